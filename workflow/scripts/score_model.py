"""Score one model on the test notes: every per-example metric, and curves along the reasoning.

Texts and labels are scored on the model's own greedy traces; likelihood, margins at events and the
mechanism on the teacher's traces.

Arguments: --model, --config, --tokenizer, --label-space, --examples, --pools (the model's own
pools: heads/pools.json for the teacher, distil/pools/seedN.json for students), --traces and
--predictions (evaluate/MODEL/), --teacher-traces (teacher/traces.parquet: test and ranking).
Outputs: --scores (scores.parquet: model, method, seed, example, metric, value), --curves
(curves.parquet: model, method, seed, example, kind, metric, t, value).
Parameters: text_encoder.name, text_encoder.sha256, text_encoder.batch_size,
evaluate.curve_examples, evaluate.curve_bins, evaluate.curve_stride, evaluate.precision_at,
evaluate.shuffles_seed,
heads.pool_size, heads.pool_temperature, heads.minimum_keys, heads.batch_size.
"""

import argparse

import pandas as pd
import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.evaluate.anchors import text_anchors
from mechdistill.evaluate.confusion import confusion_scores, shuffled_confusion_scores
from mechdistill.evaluate.curves import curve_table
from mechdistill.evaluate.example_scores import bleu_scores, final_confusion, label_scores
from mechdistill.evaluate.focus import focus_scores
from mechdistill.evaluate.margins import forced_scores
from mechdistill.evaluate.mechanism import PoolSettings, mechanism_scores
from mechdistill.evaluate.score_rows import labelled
from mechdistill.heads.pools import read_pools
from mechdistill.models.loading import load_model
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.parameters import Parameters
from mechdistill.traces.implicit import as_read_by
from mechdistill.traces.store import read_traces

INPUTS = (
    "model", "config", "tokenizer", "label-space", "examples", "pools", "traces", "predictions",
    "teacher-traces",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in INPUTS:
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("scores", "curves"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(
        args, "config", "tokenizer", "label-space", "examples", "pools", traces=args.teacher_traces
    )
    check_arguments(args, "tokenizer", "label-space", "examples", "traces", split="test")
    model, tokenizer = load_model(args.model, args.config), load_tokenizer(args.tokenizer)
    space = read_label_space(args.label_space)
    test, ranking = (read_examples(args.examples, split) for split in ("test", "ranking"))
    predictions, traces = read_table(args.predictions), read_traces(args.traces, "test")
    teacher, for_ranking = (read_traces(args.teacher_traces, s) for s in ("test", "ranking"))

    encoder = TextEncoder.packaged(
        p["text_encoder.name"], p["text_encoder.sha256"], p["text_encoder.batch_size"]
    )
    anchors = text_anchors(test, space, encoder)
    regions = {example.example: frozenset(example.regions) for example in test}
    few = traces[: p["evaluate.curve_examples"]]
    bins, stride = p["evaluate.curve_bins"], p["evaluate.curve_stride"]
    curves = curve_table(few, anchors, tokenizer, encoder, bins, stride)
    settings = PoolSettings(
        p["heads.pool_size"],
        p["heads.pool_temperature"],
        p["heads.minimum_keys"],
        p["heads.batch_size"],
    )
    pools = read_pools(args.pools)
    labels = [label.code for label in space.labels]
    scores = [
        label_scores(predictions, labels, p["evaluate.precision_at"]),
        focus_scores(traces, anchors, regions, tokenizer, encoder),
        confusion_scores(traces, anchors, regions, tokenizer, encoder),
        shuffled_confusion_scores(few, anchors, tokenizer, encoder, p["evaluate.shuffles_seed"]),
        final_confusion(curves),
        bleu_scores(traces, {trace.example: trace for trace in teacher}, tokenizer),
        forced_scores(
            model, as_read_by(model, teacher), tokenizer.pad_token_id, settings.batch_size
        ),
        mechanism_scores(
            model,
            as_read_by(model, teacher),
            as_read_by(model, for_ranking),
            [*test, *ranking],
            space,
            tokenizer,
            pools,
            settings,
        ),
    ]
    who = predictions.iloc[0]
    name = {"model": who["model"], "method": who["method"], "seed": int(who["seed"])}
    write_table(args.scores, labelled(pd.concat(scores, ignore_index=True), **name))
    write_table(args.curves, labelled(curves, **name))


if __name__ == "__main__":
    main()
