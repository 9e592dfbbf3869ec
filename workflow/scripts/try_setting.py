"""Train a student with one setting of a method, shorter, and score it on the validation notes.

Arguments: --method, --number (of the setting in the method's `settings_tried`, from 0), --seed and
the inputs of train_student; --checkpoint (resumable state; not an output).
Output: --trial (trial.json: method, number, settings, micro_f1 on the validation notes).
Parameters: distil.training, distil.deepspeed (as in train_student), distil.tuning, what the method
declares, traces.early_tokens, traces.max_new_tokens, traces.batch_size.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import torch

from mechdistill.artifacts import write_json
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.methods import load_method
from mechdistill.distil.processes import Process, among_others, launch
from mechdistill.distil.students import INPUTS, StudentFiles, train_student
from mechdistill.distil.trainer import TrainingSettings
from mechdistill.distil.zero import ZeroSettings
from mechdistill.evaluate.predictions import prediction_table
from mechdistill.parameters import Parameters
from mechdistill.significance.measures import validation_scores
from mechdistill.traces.generate import generate_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", required=True, help="a file of mechdistill/distil/methods")
    parser.add_argument("--number", required=True, type=int, help="of the setting")
    parser.add_argument("--seed", required=True, type=int, help="of base student and data order")
    for name in INPUTS:
        parser.add_argument(f"--{name.replace('_', '-')}", required=True, type=Path, help="input")
    parser.add_argument("--needs", nargs="*", default=[], type=Path, help="inputs")
    parser.add_argument("--checkpoint", required=True, type=Path, help="resumable state")
    parser.add_argument("--trial", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    zero = ZeroSettings.of(p["distil.deepspeed"])
    torch.use_deterministic_algorithms(True, warn_only=zero is not None)
    check_arguments(
        args, "config", "tokenizer", "label-space", "examples", "traces", "pools", split="training"
    )

    method_class = load_method(args.method)
    settings = {key: p[key] for key in method_class.parameters}
    settings |= method_class.settings_tried[args.number]
    method = method_class(settings)
    needs = dict(zip(method.needs, args.needs, strict=True))
    files = StudentFiles(**{name: getattr(args, name) for name in INPUTS}, needs=needs)
    whole, steps = TrainingSettings.of(p["distil.training"]), p["distil.tuning"]["steps"]
    shorter = replace(whole, steps=steps, warmup_steps=min(whole.warmup_steps, steps))
    about = f"{args.method} {args.number} {args.seed} {args.params}"
    generating = {
        "early_tokens": p["traces.early_tokens"],
        "max_new_tokens": p["traces.max_new_tokens"],
        "batch_size": p["traces.batch_size"],
    }
    if zero is not None and Process.here() is None:
        launch(sys.argv)
        return
    with among_others():
        trained, engine = train_student(
            method, files, shorter, args.seed, args.checkpoint, about, zero
        )
    if trained.model is None:  # the first process of several has it
        return

    examples, space = read_examples(args.examples, "validation"), read_label_space(args.label_space)
    labels = [label.code for label in space.labels]
    traces = generate_traces(
        trained.model.eval(),
        examples,
        load_tokenizer(args.tokenizer),
        space,
        **generating,
        what=f"{args.method}: validation traces",
    )
    rows = prediction_table(traces, examples, set(labels), args.method, args.method, args.seed)
    score = validation_scores(rows, labels, [args.method])[args.method]
    write_json(
        args.trial,
        {"method": args.method, "number": args.number, "settings": settings, "micro_f1": score},
    )
    engine.discard()


if __name__ == "__main__":
    main()
