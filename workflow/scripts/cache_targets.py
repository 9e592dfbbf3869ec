"""Run the teacher over its training traces once and keep what students are compared on.

Arguments: --model, --config (the teacher's), --pools (heads/pools.json), --traces, --examples,
--label-space, --tokenizer; --student-tokenizer, only where the students have another one.
Outputs: --targets (targets.safetensors: top-k log-probabilities and the remainder, pooled rows, A,
PCS, R, H, PRS at the phases' positions), --table (targets.parquet: one row a training trace:
whether it is used and how many positions it has, and loses between tokenizers).
Parameters: distil.teacher_top_k, heads.minimum_keys, heads.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.anchors import anchors_by_example
from mechdistill.distil.caching import cache_targets, describe_traces, without_distributions
from mechdistill.distil.retokenised import retokenise_all, shared_table
from mechdistill.distil.sequences import usable, whole_trace
from mechdistill.distil.targets import write_targets
from mechdistill.heads.pools import read_pools
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "pools", "traces", "examples", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--student-tokenizer", help="input, where it is not the teacher's")
    for name in ("targets", "table"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(
        args, "config", "tokenizer", "label-space", "examples", "traces", "pools", split="training"
    )
    teacher = load_model(args.model, args.config)
    tokenizer = load_tokenizer(args.tokenizer)
    traces = read_traces(args.traces, "training")
    examples = read_examples(args.examples, "training")
    space = read_label_space(args.label_space)
    anchors = anchors_by_example(teacher, examples, space, tokenizer)
    if args.student_tokenizer:
        student_tokenizer = load_tokenizer(args.student_tokenizer)
        pairs = retokenise_all(traces, examples, tokenizer, student_tokenizer, space)
        used = [pair for pair in pairs if usable(pair.student_trace())]
        sequences = [pair.teacher_sequence() for pair in used]
        table = shared_table(pairs)
    else:
        sequences = [whole_trace(trace) for trace in traces if usable(trace)]
        table = describe_traces(traces)
    targets = cache_targets(
        teacher,
        sequences,
        anchors,
        read_pools(args.pools),
        top_k=p["distil.teacher_top_k"],
        minimum_keys=p["heads.minimum_keys"],
        batch_size=p["heads.batch_size"],
        pad_id=tokenizer.pad_token_id,
        special_ids=tokenizer.all_special_ids,
    )
    if args.student_tokenizer:
        groups = {pair.student.example: pair.alignment.second for pair in used}
        targets = without_distributions(targets, groups)
    write_targets(args.targets, targets)
    write_table(args.table, table)


if __name__ == "__main__":
    main()
