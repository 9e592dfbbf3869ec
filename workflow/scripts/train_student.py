"""Train one student with one method on the teacher's traces; no teacher is loaded.

With distil.deepspeed the script starts itself by torchrun, in one process for each GPU; where
torchrun has started it (processes on several machines), it is one of the processes.

Arguments: --method, --seed, --base, --config (weights and configuration of the base student),
--pools (the base student's own), --targets, --traces, --examples, --label-space, --tokenizer,
--needs (what the method declares as `needs`, in that order), --tuned (tuned.json: values that
tuning chose; none where nothing is tuned),
--checkpoint (resumable state; not an output: removed when the training is finished).
Outputs: --model (model.safetensors), --model-config (config.json), --curve
(learning_curve.parquet: method, seed, step, metric, value, weight), --budget (budget.json).
Parameters: distil.training, distil.deepspeed and what the method declares in its file
(mechdistill.distil.methods.declared_parameters).
"""

import argparse
import sys
from pathlib import Path

import torch

from mechdistill.artifacts import write_json, write_table
from mechdistill.data.one_world import check_arguments
from mechdistill.distil.methods import load_method
from mechdistill.distil.processes import Process, among_others, launch
from mechdistill.distil.students import INPUTS, StudentFiles, settings_of, train_student
from mechdistill.distil.trainer import TrainingSettings
from mechdistill.distil.zero import ZeroSettings
from mechdistill.models.loading import check_saved, save_model
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", required=True, help="a file of mechdistill/distil/methods")
    parser.add_argument("--seed", required=True, type=int, help="of base student and data order")
    for name in INPUTS:
        parser.add_argument(f"--{name.replace('_', '-')}", required=True, type=Path, help="input")
    parser.add_argument("--needs", nargs="*", default=[], type=Path, help="inputs")
    parser.add_argument("--tuned", nargs="?", type=Path, help="input")
    parser.add_argument("--checkpoint", required=True, type=Path, help="resumable state")
    for name in ("model", "model-config", "curve", "budget"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    zero = ZeroSettings.of(p["distil.deepspeed"])
    # GPUs have no deterministic way of some operations
    torch.use_deterministic_algorithms(True, warn_only=zero is not None)
    check_arguments(
        args, "config", "tokenizer", "label-space", "examples", "traces", "pools", split="training"
    )

    method_class = load_method(args.method)
    settings, tried = settings_of(method_class.parameters, p, args.tuned)
    method = method_class(settings)
    needs = dict(zip(method.needs, args.needs, strict=True))
    files = StudentFiles(**{name: getattr(args, name) for name in INPUTS}, needs=needs)
    training = TrainingSettings.of(p["distil.training"])
    about = f"{args.method} {args.seed} {args.params} {settings}"
    if zero is not None and Process.here() is None:
        launch(sys.argv)
        return
    with among_others():
        trained, engine = train_student(
            method, files, training, args.seed, args.checkpoint, about, zero
        )
    if trained.model is None:  # the first process of several has it
        return

    save_model(trained.model, args.model, args.model_config)
    check_saved(trained.model, args.model, args.model_config)
    curve = trained.history.frame()
    curve.insert(0, "method", args.method)
    curve.insert(1, "seed", args.seed)
    write_table(args.curve, curve)
    write_json(
        args.budget,
        {
            "method": args.method,
            "seed": args.seed,
            "parameters": sum(weights.numel() for weights in trained.model.parameters()),
            **trained.spent.content(),
            "teacher_generations": trained.teacher_generations,
            "settings_tried": tried,
            "settings": settings,
            "weights": training.weights,
            "left_out": list(trained.left_out),
            **trained.engine,
        },
    )
    engine.discard()


if __name__ == "__main__":
    main()
