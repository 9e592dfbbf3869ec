"""Read the region of the teacher's decisions off its residual stream, some tokens before them.

Inputs: teacher weights and configuration, traces, events, label space, tokenizer.
Outputs: elicitation_probe.parquet (one row an offset and layer).
Parameters: patching.probe_depth, patching.seed, heads.batch_size, heads.bootstrap.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.patching.region_probe import probe_regions
from mechdistill.patching.undecided import COLUMNS, undecided
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "events", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--probe", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "traces", "label-space", "tokenizer")
    read = [t for t in read_traces(args.traces) if t.split in ("ranking", "patching")]
    events = read_table(args.events, COLUMNS, may_be_empty=True)
    probe = probe_regions(
        load_model(args.model, args.config),
        read,
        undecided(events, read, read_label_space(args.label_space)),
        depth=p["patching.probe_depth"],
        resamples=p["heads.bootstrap"],
        seed=p["patching.seed"],
        pad_id=load_tokenizer(args.tokenizer).pad_token_id,
        batch_size=p["heads.batch_size"],
    )
    write_table(args.probe, probe)


if __name__ == "__main__":
    main()
