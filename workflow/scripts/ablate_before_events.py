"""Ablate one head at a time some tokens before a region is decided; how far heads read the note.

Inputs: teacher weights and configuration, traces, events, examples, label space, tokenizer.
Outputs: --ablation (one row an offset or null, head and example), --attention (one an offset, head
and example).
Parameters: data.prompt, patching.elicit_offsets, patching.null_draws, patching.seed,
patching.branches_per_pass, heads.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.frame import Frame
from mechdistill.data.labels import read_label_space
from mechdistill.data.note_place import note_tokens
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.patching.elicitation import ablate_before_events, note_attention
from mechdistill.patching.head_ablation import Options
from mechdistill.patching.undecided import COLUMNS, undecided
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "events", "examples", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("ablation", "attention"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "traces", "examples", "label-space", "tokenizer")
    tokenizer = load_tokenizer(args.tokenizer)
    model = load_model(args.model, args.config)
    read = [t for t in read_traces(args.traces) if t.split in ("ranking", "patching")]
    events = read_table(args.events, COLUMNS, may_be_empty=True)
    found = undecided(events, read, read_label_space(args.label_space))
    options = Options(
        draws=p["patching.null_draws"],
        seed=p["patching.seed"],
        pad_id=tokenizer.pad_token_id,
        batch_size=p["heads.batch_size"],
        branches_per_pass=p["patching.branches_per_pass"],
    )
    offsets = p["patching.elicit_offsets"]
    ablation = ablate_before_events(
        model, read, events, found, offsets, split="patching", reference="ranking", options=options
    )
    frame = Frame.of(tokenizer, **p["data.prompt"])
    patched = [trace for trace in read if trace.split == "patching"]
    names = {trace.example for trace in patched}
    attention = note_attention(
        model,
        patched,
        {
            example.example: note_tokens(example, tokenizer, frame)
            for example in read_examples(args.examples)
            if example.example in names
        },
        found,
        offsets,
        pad_id=options.pad_id,
        batch_size=options.batch_size,
    )
    write_table(args.ablation, ablation)
    write_table(args.attention, attention)


if __name__ == "__main__":
    main()
