"""Cut the teacher's traces into the tokens of the students, and parse them in these.

Arguments: --traces (of the teacher), --examples, --label-space, --tokenizer (the teacher's),
--student-tokenizer.
Outputs: --student-traces (traces.parquet, all splits; training traces hold the positions that
teacher and student share, the others all of their own).
Parameters: traces.max_new_tokens.
"""

import argparse

from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.retokenised import require_room, retokenise_all
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces, write_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("traces", "examples", "label-space", "tokenizer", "student-tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--student-traces", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "tokenizer", "label-space", "examples", "traces")

    pairs = retokenise_all(
        read_traces(args.traces),
        read_examples(args.examples),
        load_tokenizer(args.tokenizer),
        load_tokenizer(args.student_tokenizer),
        read_label_space(args.label_space),
    )
    require_room(pairs, p["traces.max_new_tokens"])
    traces = [
        pair.student_trace() if pair.teacher.split == "training" else pair.student for pair in pairs
    ]
    write_traces(args.student_traces, traces)


if __name__ == "__main__":
    main()
