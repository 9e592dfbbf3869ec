"""Build the label space of the world foldoc from the dictionary of dict-foldoc, and its tokenizer.

The dictionary is looked for, and fetched if it is nowhere; its SHA-256 is checked.
Outputs: --label-space (JSON), --tokenizer (JSON; left out where a model brings its own).
Parameters: seed, data.world, data.foldoc.
"""

import argparse

from mechdistill.data.dictd import read_dictionary
from mechdistill.data.dictionary_package import DICTIONARY, PACKAGE, find_dictionary
from mechdistill.data.foldoc import read_articles, task_graph
from mechdistill.data.foldoc_labels import Sizes, build_foldoc_space
from mechdistill.data.labels import write_label_space
from mechdistill.data.tokenizer import build_tokenizer, save_tokenizer
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label-space", required=True, help="output")
    parser.add_argument("--tokenizer", help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)

    world, wanted = p["data.world"], p["data.foldoc"]
    folder = find_dictionary(wanted["folder"])
    articles = read_articles(read_dictionary(folder, DICTIONARY, wanted["sha256"]))
    space = build_foldoc_space(
        p["seed"],
        task_graph(articles, wanted["task"], wanted["least_words"]),
        wanted["task"],
        Sizes(
            world["regions"],
            world["labels_per_region"],
            world["evidence_per_region"],
            world["never_gold"],
        ),
        wanted["least_documents"],
        f"the Debian package {PACKAGE}, task {wanted['task']}, data of SHA-256 {wanted['sha256']}",
    )
    write_label_space(args.label_space, space)
    if args.tokenizer:
        save_tokenizer(args.tokenizer, build_tokenizer(space))


if __name__ == "__main__":
    main()
