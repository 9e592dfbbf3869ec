"""Write the data card: what the notes are, how they were made, how many there are.

Inputs: --label-space, --tokenizer, --examples, --twins.
Output: --card (Markdown).
Parameters: seed, data.world, data.splits.
"""

import argparse

from mechdistill.artifacts import write_text
from mechdistill.data.card import data_card
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.twins import read_twins
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("label-space", "tokenizer", "examples", "twins"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--card", required=True, help="output")
    parser.add_argument("--without-note", action="store_true", help="show no note")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "label-space", "examples", "twins")

    card = data_card(
        read_label_space(args.label_space),
        load_tokenizer(args.tokenizer),
        read_examples(args.examples),
        list(read_twins(args.twins).values()),
        {"seed": p["seed"], **p["data.world"]},
        p["data.splits"],
        show_note=not args.without_note,
    )
    write_text(args.card, card)


if __name__ == "__main__":
    main()
