"""Write the candidate lists of notes anew: all labels, or those that a retriever picks.

Inputs: --label-space, --tokenizer (of the models that will read the notes), --drawn (notes as they
were drawn).
Outputs: --examples, --listing (one row a note: labels listed, true codes, true codes retrieved).
Parameters: seed, data.prompt, data.candidates.
"""

import argparse

from mechdistill.artifacts import write_table
from mechdistill.data.candidates import CandidateLists, list_all
from mechdistill.data.examples import read_examples, write_examples
from mechdistill.data.frame import Frame
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("label-space", "tokenizer", "drawn"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("examples", "listing"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "tokenizer", "label-space", examples=args.drawn)

    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    frame = Frame.of(tokenizer, **p["data.prompt"])
    lists = CandidateLists.of(space, frame, p["data.candidates"], p["seed"])[0]
    examples, listing = list_all(read_examples(args.drawn), lists, p["seed"])
    write_examples(args.examples, examples)
    write_table(args.listing, listing)


if __name__ == "__main__":
    main()
