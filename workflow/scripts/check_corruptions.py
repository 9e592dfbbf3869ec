"""Check the twins: what each corruption does to margins and to what the teacher writes, unpatched.

Inputs: teacher weights and configuration, traces, examples, twins, label space, tokenizer.
Outputs: manipulation.parquet (one row a phase, twin, example and metric).
Parameters: traces.early_tokens, traces.max_new_tokens, traces.batch_size, text_encoder,
patching.branches_per_pass.
"""

import argparse

import pandas as pd
import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.twins import read_twins
from mechdistill.evaluate.anchors import text_anchors
from mechdistill.evaluate.confusion import confusion
from mechdistill.evaluate.focus import focus
from mechdistill.models.generate import greedy
from mechdistill.models.loading import load_model
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.parameters import Parameters
from mechdistill.patching.conditions import head_masks
from mechdistill.patching.decisions import near_miss_rate, region_recall
from mechdistill.patching.manipulation import margin_gaps, written_gaps
from mechdistill.patching.margin_sweep import sweep_margins
from mechdistill.patching.pairs import DESIGN, eligible_traces, make_pairs
from mechdistill.traces.parse import parse_trace
from mechdistill.traces.store import read_traces

WRITTEN = {1: ("focus", "region_recall"), 2: ("confusion", "near_miss_rate")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "examples", "twins", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--manipulation", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    model = load_model(args.model, args.config)
    tokenizer = load_tokenizer(args.tokenizer)
    space = read_label_space(args.label_space)
    examples = read_examples(args.examples, "patching")
    by_name = {example.example: example for example in examples}
    traces = eligible_traces(read_traces(args.traces, "patching"), examples)
    twins = read_twins(args.twins)
    encoder = TextEncoder.packaged(**p["text_encoder"])
    anchors = text_anchors(examples, space, encoder)
    nothing = head_masks([], model.config.num_hidden_layers, model.config.num_attention_heads)

    clean_traces = {trace.example: trace for trace in traces}

    def metrics(written):
        names = [trace.example for trace in written]
        # where a corrupted trace has no refinement position, the clean one's are read
        donors = [clean_traces[name] for name in names]
        confusions = confusion(written, anchors, tokenizer, encoder, donors)
        return {
            "focus": dict(zip(names, focus(written, anchors, tokenizer, encoder))),
            "confusion": dict(zip(names, confusions)),
            "region_recall": dict(zip(names, region_recall(written, by_name))),
            "near_miss_rate": dict(zip(names, near_miss_rate(written, by_name))),
        }

    clean = metrics(traces)
    tables = []
    for twin in dict.fromkeys(twin for twin, _ in DESIGN):
        pairs = make_pairs(traces, twins, twin, tokenizer)
        written = greedy(
            model,
            [pair.corrupted_prompt for pair in pairs],
            max_new_tokens=p["traces.max_new_tokens"],
            eos_id=tokenizer.eos_token_id,
            pad_id=tokenizer.pad_token_id,
            batch_size=p["traces.batch_size"],
            what=f"trace of {twin}",
        )
        corrupted = metrics(
            [
                parse_trace(by_name[q.example], ids, tokenizer, space, p["traces.early_tokens"])
                for q, ids in zip(pairs, written, strict=True)
            ]
        )
        for phase in (phase for name, phase in DESIGN if name == twin):
            effects = sweep_margins(
                model,
                pairs,
                phase,
                nothing,
                pad_id=tokenizer.pad_token_id,
                branches_per_pass=p["patching.branches_per_pass"],
            )
            tables.append(margin_gaps(effects, phase, twin))
            for metric in WRITTEN[phase]:
                tables.append(written_gaps(clean[metric], corrupted[metric], phase, twin, metric))
    write_table(args.manipulation, pd.concat(tables, ignore_index=True))


if __name__ == "__main__":
    main()
