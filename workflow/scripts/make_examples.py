"""Draw the notes of every split, with gold codes, near-misses, candidates and reference traces.

Inputs: --label-space, --tokenizer (of the models that will read the notes).
Output: --examples (Parquet).
Parameters: seed, data.world, data.splits, data.prompt.
"""

import argparse

from mechdistill.data.examples import check_tokens, draw_cases, example_of, write_examples
from mechdistill.data.frame import Frame
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

    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    settings = WorldSettings.of(p["seed"], p["data.world"])
    drawn = draw_cases(space, settings, p["data.splits"], p["seed"])
    check_tokens([case for _, _, case in drawn], tokenizer)
    frame = Frame.of(tokenizer, **p["data.prompt"])
    examples = [example_of(case, name, split, frame) for name, split, case in drawn]
    write_examples(args.examples, examples)


if __name__ == "__main__":
    main()
