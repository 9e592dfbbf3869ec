"""Write the notes of an embedded study as the files of MIMIC-IV, for its loader to be tried on.

Inputs: --label-space, --examples. Outputs: --tables (five, in the order of mimic_iv.TABLES).
Parameters: none.
"""

import argparse
from pathlib import Path

from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.sources.embedded_stays import stays_of, titles_of
from mechdistill.data.sources.mimic_iv import TABLES
from mechdistill.data.sources.mimic_iv_files import write_mimic_iv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("label-space", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--tables", required=True, nargs=len(TABLES), help="outputs")
    parser.add_argument("--params", required=True, help="JSON object of parameters (none)")
    args = parser.parse_args()
    check_arguments(args, "label-space", "examples")
    space = read_label_space(args.label_space)
    paths = dict(zip(TABLES, map(Path, args.tables), strict=True))
    write_mimic_iv(paths, stays_of(read_examples(args.examples), space), titles_of(space), {})


if __name__ == "__main__":
    main()
