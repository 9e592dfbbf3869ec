"""Find the decision events of the teacher's traces and measure their margins.

Inputs: teacher weights and configuration, traces, examples, label space, tokenizer.
Outputs: --events (one row an event, all splits).
Parameters: heads.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.event_table import event_table
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "examples", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--events", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space", "examples", "traces")
    events = event_table(
        load_model(args.model, args.config),
        read_traces(args.traces),
        read_examples(args.examples),
        load_tokenizer(args.tokenizer),
        read_label_space(args.label_space),
        batch_size=p["heads.batch_size"],
    )
    write_table(args.events, events)


if __name__ == "__main__":
    main()
