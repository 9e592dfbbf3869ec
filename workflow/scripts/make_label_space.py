"""Draw the label space of the world from ICD-10-CM and build its tokenizer.

Outputs: --label-space (JSON), --tokenizer (JSON; left out where a model brings its own).
Parameters: seed, data.world.
"""

import argparse

from mechdistill.data.labels import build_label_space, write_label_space
from mechdistill.data.tokenizer import build_tokenizer, save_tokenizer
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label-space", required=True, help="output")
    parser.add_argument("--tokenizer", help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)

    world = p["data.world"]
    space = build_label_space(
        seed=p["seed"],
        regions=world["regions"],
        labels_per_region=world["labels_per_region"],
        evidence_per_region=world["evidence_per_region"],
        never_gold=world["never_gold"],
    )
    write_label_space(args.label_space, space)
    if args.tokenizer:
        save_tokenizer(args.tokenizer, build_tokenizer(space))


if __name__ == "__main__":
    main()
