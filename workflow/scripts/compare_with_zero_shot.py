"""Compare the fine-tuned teacher with the checkpoint that it came from: traces, and heads.

Inputs: --pretrained, --pretrained-config (weights and configuration before fine-tuning); --model,
--config, --traces (the teacher's); --label-space, --tokenizer, --examples.
Outputs: --zero-shot-traces (what the checkpoint writes on the patching and test notes), --quality
(CSV, one row a model and split), --head-agreement (CSV, one row a score: rank correlation of all
heads before and after, both models reading the reference traces of the ranking notes).
Parameters: traces.early_tokens, traces.max_new_tokens, traces.batch_size, heads.minimum_keys,
heads.batch_size.
"""

import argparse
from functools import partial

import pandas as pd
import torch

from mechdistill.artifacts import write_text
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.heads.change import head_agreement
from mechdistill.heads.measure import measure_heads
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.generate import generate_traces
from mechdistill.traces.quality_table import quality_table
from mechdistill.traces.reference import reference_traces
from mechdistill.traces.store import read_traces, write_traces

SPLITS = ("patching", "test")
"""Of the notes that both models write on."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    inputs = ("pretrained", "pretrained-config", "model", "config", "traces")
    for name in (*inputs, "label-space", "tokenizer", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("zero-shot-traces", "quality", "head-agreement"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space", "examples", "traces")
    check_arguments(args, "tokenizer", config=args.pretrained_config)

    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    examples = [e for split in SPLITS for e in read_examples(args.examples, split)]
    ranking = read_examples(args.examples, "ranking")
    measure = partial(
        measure_heads,
        traces=reference_traces(ranking, tokenizer, space, p["traces.early_tokens"]),
        examples=ranking,
        space=space,
        tokenizer=tokenizer,
        minimum_keys=p["heads.minimum_keys"],
        batch_size=p["heads.batch_size"],
    )

    pretrained = load_model(args.pretrained, args.pretrained_config)
    before = measure(pretrained, name="zero-shot").values
    traces = generate_traces(
        pretrained,
        examples,
        tokenizer,
        space,
        early_tokens=p["traces.early_tokens"],
        max_new_tokens=p["traces.max_new_tokens"],
        batch_size=p["traces.batch_size"],
        what="zero-shot trace",
    )
    del pretrained
    after = measure(load_model(args.model, args.config), name="teacher").values

    own = read_traces(args.traces)
    tables = [
        quality_table(examples, written, name, space)
        for name, written in (("zero-shot", traces), ("fine-tuned", own))
    ]
    write_traces(args.zero_shot_traces, traces)
    write_text(args.quality, pd.concat(tables).to_csv(index=False))
    write_text(args.head_agreement, head_agreement(before, after).to_csv(index=False))


if __name__ == "__main__":
    main()
