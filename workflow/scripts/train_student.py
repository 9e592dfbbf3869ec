"""Train one student with one method on the teacher's traces; no teacher is loaded.

Arguments: --method, --seed, --base, --config (weights and configuration of the base student),
--pools (the base student's own), --targets, --traces, --examples, --label-space, --tokenizer,
--checkpoint (resumable state; not an output: removed when the training is finished).
Outputs: --model (model.safetensors), --model-config (config.json), --curve
(learning_curve.parquet: method, seed, step, metric, value, weight), --budget (budget.json).
Parameters: distil.training and what the method declares in its file
(mechdistill.distil.methods.declared_parameters).
"""

import argparse
from pathlib import Path

import torch

from mechdistill.artifacts import write_json, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.anchors import anchors_by_example
from mechdistill.distil.method import Student
from mechdistill.distil.methods import load_method
from mechdistill.distil.objective import Distillation
from mechdistill.distil.order import DataOrder
from mechdistill.distil.targets import read_targets
from mechdistill.distil.trainer import TrainingSettings, train
from mechdistill.heads.pools import read_pools
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.identity import run_identity
from mechdistill.models.loading import load_model, save_model
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces

INPUTS = (
    "base", "config", "pools", "targets", "traces", "examples", "label_space", "tokenizer"
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", required=True, help="a file of mechdistill/distil/methods")
    parser.add_argument("--seed", required=True, type=int, help="of base student and data order")
    for name in INPUTS:
        parser.add_argument(f"--{name.replace('_', '-')}", required=True, help="input")
    parser.add_argument("--checkpoint", required=True, type=Path, help="resumable state")
    for name in ("model", "model-config", "curve", "budget"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    method_class = load_method(args.method)
    method = method_class({key: p[key] for key in method_class.parameters})
    settings = TrainingSettings.of(p["distil.training"])
    traces = read_traces(args.traces, "training")
    sequences = method.prepare(traces)
    targets = read_targets(args.targets)
    tokenizer = load_tokenizer(args.tokenizer)
    model = load_model(args.base, args.config).train()
    anchors = anchors_by_example(
        model,
        read_examples(args.examples, "training"),
        read_label_space(args.label_space),
        tokenizer,
    )
    pools = read_pools(args.pools)
    student = Student(model, pools, anchors, targets.pool_sizes, targets.minimum_keys)
    method.start(student, sequences)

    order = DataOrder([len(s.tokens) for s in sequences], settings.batch_size, args.seed)
    objective = Distillation(
        model,
        method,
        sequences,
        targets,
        order,
        tokenizer.pad_token_id,
        tokenizer.all_special_ids,
    )
    wildcards = f"{args.method} {args.seed} {args.params}"
    identity = run_identity(wildcards, [getattr(args, name) for name in INPUTS])
    checkpoint = Checkpoint(args.checkpoint, identity)
    history, spent = train(model, objective, settings, checkpoint, f"{args.method} step")

    save_model(model, args.model, args.model_config)
    curve = history.frame()
    curve.insert(0, "method", args.method)
    curve.insert(1, "seed", args.seed)
    write_table(args.curve, curve)
    write_json(
        args.budget,
        {
            "method": args.method,
            "seed": args.seed,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            **spent.content(),
            "teacher_generations": len({sequence.example for sequence in sequences}),
            "left_out": list(method.left_out()),
        },
    )
    checkpoint.discard()


if __name__ == "__main__":
    main()
