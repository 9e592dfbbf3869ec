"""Write the twins K0, K1 and K2 of the patching notes.

Inputs: --label-space, --tokenizer, --examples.
Output: --twins (Parquet).
Parameters: seed.
"""

import argparse

from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.twins import twins_of, write_twins
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("label-space", "tokenizer", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--twins", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "tokenizer", "label-space", "examples", split="patching")

    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    examples = read_examples(args.examples, "patching")
    write_twins(
        args.twins,
        [twin for example in examples for twin in twins_of(example, space, tokenizer, p["seed"])],
    )


if __name__ == "__main__":
    main()
