"""Draw the notes of every split, with gold codes, near-misses, candidates and reference traces.

Inputs: --label-space, --tokenizer (each word of a note must be one token of it).
Output: --examples (Parquet).
Parameters: seed, data.world, data.splits.
"""

import argparse

from mechdistill.data.examples import check_tokens, draw_cases, example_of, write_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--examples", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)

    space = read_label_space(args.label_space)
    settings = WorldSettings.of(p["seed"], p["data.world"])
    drawn = draw_cases(space, settings, p["data.splits"], p["seed"])
    check_tokens([case for _, _, case in drawn], load_tokenizer(args.tokenizer))
    write_examples(args.examples, [example_of(case, name, split) for name, split, case in drawn])


if __name__ == "__main__":
    main()
