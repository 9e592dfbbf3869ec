"""Patch the margins of notes whose candidate lists have another length.

Inputs: --model (the teacher's weights), --config, --label-space, --tokenizer, --drawn (notes as
they were drawn), --rankings; --number of labels of a list, or all.
Outputs: --margin (one row a condition, site, direction, example and metric), --written (one row a
note: its list, and what the teacher answered).
Parameters: seed, data.prompt, data.candidates, traces.early_tokens, traces.max_new_tokens,
traces.batch_size, patching.bins, patching.random_draws, patching.seed, patching.branches_per_pass.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.candidates import CandidateLists, list_all
from mechdistill.data.examples import read_examples
from mechdistill.data.frame import Frame
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.loading import load_model
from mechdistill.models.shape import layers_and_heads
from mechdistill.parameters import Parameters
from mechdistill.patching.conditions import plan
from mechdistill.patching.listed import patch_listed, written_table
from mechdistill.traces.generate import generate_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "label-space", "tokenizer", "drawn", "rankings"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--number", required=True, help="labels of a list, or all")
    for name in ("margin", "written"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(
        args,
        *("config", "tokenizer", "label-space", "rankings"),
        examples=args.drawn,
        split="patching",
    )
    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    frame = Frame.of(tokenizer, **p["data.prompt"])
    kinds = CandidateLists.of(space, frame, p["data.candidates"], p["seed"])
    lists = {str(kind.number): kind for kind in kinds}[args.number]
    examples, listing = list_all(read_examples(args.drawn, "patching"), lists, p["seed"])
    model = load_model(args.model, args.config)
    traces = generate_traces(
        model,
        examples,
        tokenizer,
        space,
        early_tokens=p["traces.early_tokens"],
        max_new_tokens=p["traces.max_new_tokens"],
        batch_size=p["traces.batch_size"],
        what=f"trace with {args.number} candidates",
    )
    margin = patch_listed(
        model,
        examples,
        traces,
        space,
        tokenizer,
        plan(
            read_table(args.rankings),
            layers_and_heads(args.config),
            bins=p["patching.bins"],
            draws=p["patching.random_draws"],
            seed=p["patching.seed"],
        ),
        seed=p["seed"],
        branches_per_pass=p["patching.branches_per_pass"],
    )
    write_table(args.margin, margin)
    write_table(args.written, written_table(listing, examples, traces))


if __name__ == "__main__":
    main()
