"""Follow the teacher's heads through the reasoning and record where they look (Figures 7R, 4R).

Inputs: teacher weights and configuration, traces, examples, label space, tokenizer.
Outputs: dynamics.parquet (ranking examples), attention_rows.parquet (the first ranking examples
and the test example that the report reads through).
Parameters: heads.batch_size, heads.attention_examples, report.worked_example.
"""

import argparse

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.heads.attention_rows import attention_rows
from mechdistill.heads.dynamics import head_dynamics
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "examples", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("dynamics", "attention-rows"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space", "examples", "traces")
    model = load_model(args.model, args.config)
    examples = read_examples(args.examples)
    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    ranking, test = (read_traces(args.traces, split) for split in ("ranking", "test"))
    worked = p["report.worked_example"]
    shown = ranking[: p["heads.attention_examples"]]
    shown += [] if worked is None else test[worked : worked + 1]
    batch_size = p["heads.batch_size"]
    known = examples, space, tokenizer
    dynamics = head_dynamics(model, ranking, *known, name="teacher", batch_size=batch_size)
    rows = attention_rows(model, shown, *known, name="teacher", batch_size=batch_size)
    write_table(args.dynamics, dynamics)
    write_table(args.attention_rows, rows)


if __name__ == "__main__":
    main()
