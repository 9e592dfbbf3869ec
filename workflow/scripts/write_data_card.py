"""Write the data card: what the notes are, how they were made, how many there are.

Inputs: --label-space, --tokenizer, --examples, --twins; --listing of studies with long candidate
lists.
Output: --card (Markdown).
Parameters: seed, data.world, data.splits; data.candidates, if there is a listing.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.data.candidates import COLUMNS
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
    parser.add_argument("--listing", help="input")
    parser.add_argument("--without-note", action="store_true", help="show no note")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "label-space", "examples", "twins")

    long_lists = (
        {f"candidates.{k}": v for k, v in p["data.candidates"].items()} if args.listing else {}
    )
    card = data_card(
        read_label_space(args.label_space),
        load_tokenizer(args.tokenizer),
        read_examples(args.examples),
        list(read_twins(args.twins).values()),
        {"seed": p["seed"], **p["data.world"], **long_lists},
        p["data.splits"],
        show_note=not args.without_note,
        listing=read_table(args.listing, COLUMNS) if args.listing else None,
    )
    write_text(args.card, card)


if __name__ == "__main__":
    main()
