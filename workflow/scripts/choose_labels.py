"""Choose the regions and labels that documents of the user are asked for.

Inputs: --documents, --labels (Parquet, of read_source). Output: --label-space (JSON).
Parameters: seed, data.world, data.source.
"""

import argparse

from mechdistill.artifacts import read_table
from mechdistill.data.labels import write_label_space
from mechdistill.data.sources.choosing import (
    Wanted,
    choose_labels,
    is_clinical,
    split_of_document,
)
from mechdistill.data.sources.collection import read_documents
from mechdistill.data.splits import TRAINING
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("documents", "labels"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--label-space", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)

    world, source = p["data.world"], p["data.source"]
    clinical = is_clinical(source["name"])
    space = choose_labels(
        read_table(args.labels, ["code", "kind", "title", "training_documents"]),
        (
            (document.document, document.codes, document.filtered)
            for document in read_documents(args.documents)
            if split_of_document(document, p["seed"], clinical) == TRAINING
        ),
        Wanted(
            world["regions"],
            world["labels_per_region"],
            world["evidence_per_region"],
            world["never_gold"],
        ),
        p["seed"],
        f"{source['name']}, version {source['version']}, of the user's own files",
        "brought clinical" if clinical else "brought",
    )
    write_label_space(args.label_space, space)


if __name__ == "__main__":
    main()
