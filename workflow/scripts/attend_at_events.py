"""Read what the heads that count at decisions attend to there.

Inputs: teacher weights and configuration, traces, events, head_effects.parquet, examples, label
space, tokenizer.
Outputs: --attention (one row a kind of decision or null, place, head and example).
Parameters: patching.seed, heads.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.patching.event_attention import attend_at_events
from mechdistill.patching.null_events import EVENTS
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "events", "effects", "examples", "label-space"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--tokenizer", required=True, help="input")
    parser.add_argument("--attention", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space", "examples", "traces")
    attention = attend_at_events(
        load_model(args.model, args.config),
        read_traces(args.traces),
        read_examples(args.examples),
        read_table(args.events, (*EVENTS, "region", "earlier"), may_be_empty=True),
        read_table(args.effects, may_be_empty=True),
        read_label_space(args.label_space),
        load_tokenizer(args.tokenizer),
        split="patching",
        seed=p["patching.seed"],
        batch_size=p["heads.batch_size"],
    )
    write_table(args.attention, attention)


if __name__ == "__main__":
    main()
