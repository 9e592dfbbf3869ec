"""Read the documents that the user brings, and their labels, by the recipe of the data set.

Input: --checked (JSON, of check_source). Outputs: --documents (Parquet), --labels (Parquet, with
inverse propensities by the constants of the data set).
Parameters: data.source.
"""

import argparse
from pathlib import Path

from mechdistill.artifacts import write_table
from mechdistill.data.sources.brought import Brought, require_checked
from mechdistill.data.sources.collection import labels_frame, write_documents
from mechdistill.data.sources.propensities import propensity_constants
from mechdistill.evaluate.ranking import inverse_propensity
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checked", required=True, help="input")
    for name in ("documents", "labels"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)

    brought = Brought.of(p["data.source"])
    require_checked(brought, args.checked)
    with brought.collection(Path(args.documents).parent) as found:
        read = write_documents(args.documents, found.documents, found.tally)
    frame = labels_frame(found.labels, read.uses, read.training_uses)
    constants = propensity_constants(brought.version)
    counts = dict(zip(frame["code"], frame["training_documents"].tolist(), strict=True))
    weights = inverse_propensity(counts, read.training, *constants)
    write_table(args.labels, frame.assign(inverse_propensity=frame["code"].map(weights)))


if __name__ == "__main__":
    main()
