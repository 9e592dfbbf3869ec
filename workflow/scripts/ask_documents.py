"""Make an example of each drawn document: its text, candidates, gold codes, near-misses.

Inputs: --label-space, --tokenizer (of the models that will read them), --documents.
Output: --examples (Parquet).
Parameters: seed, data.world, data.splits, data.prompt, data.source.
"""

import argparse

from mechdistill.data.examples import write_examples
from mechdistill.data.frame import Frame
from mechdistill.data.labels import read_label_space
from mechdistill.data.sources.asking import ask, documents_to_ask
from mechdistill.data.sources.choosing import is_clinical
from mechdistill.data.sources.collection import read_documents
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("label-space", "tokenizer", "documents"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--examples", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)

    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    settings = WorldSettings.of(p["seed"], p["data.world"])
    source = p["data.source"]
    told = documents_to_ask(
        read_documents(args.documents),
        space,
        settings,
        p["data.splits"],
        source["most_words"],
        is_clinical(source["name"]),
    )
    frame = Frame.of(tokenizer, **p["data.prompt"])
    write_examples(args.examples, ask(told, space, settings, frame))


if __name__ == "__main__":
    main()
