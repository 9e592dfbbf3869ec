"""Check every file of the data set that the user brings, before any work is spent on it.

The files lie in data.source.folder. Their counts are printed beside the published ones.
Output: --checked (JSON: files with their SHA-256, counts, warnings).
Parameters: data.source.
"""

import argparse

from mechdistill.artifacts import write_json
from mechdistill.data.sources.brought import Brought, checked, count_lines
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checked", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)

    content = checked(Brought.of(p["data.source"]))
    for line in count_lines(content):
        print(line)
    write_json(args.checked, content)


if __name__ == "__main__":
    main()
