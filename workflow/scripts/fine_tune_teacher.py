"""Fine-tune the converted checkpoint on fresh notes with templated reasoning.

Inputs: --pretrained, --pretrained-config (the checkpoint's weights and configuration),
--label-space, --tokenizer, --examples (validation notes), --checkpoint (resumable state; no output:
removed when the fine-tuning is finished).
Outputs: --model (weights), --config, --curve (step, metric, value).
Parameters: seed, data.world, data.prompt, data.candidates (where lists are long), teacher.seed,
teacher.fine_tuning, traces.max_new_tokens, traces.batch_size.
"""

import argparse
from functools import partial
from pathlib import Path

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.candidates import CandidateLists
from mechdistill.data.examples import read_examples
from mechdistill.data.frame import Frame
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.fine_tuning import FineTuning, fine_tune
from mechdistill.models.identity import run_identity
from mechdistill.models.loading import load_model, save_model
from mechdistill.models.pretraining import require_score
from mechdistill.parameters import Parameters
from mechdistill.traces.lessons import draw_lessons
from mechdistill.traces.quality import validation_scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    inputs = ("pretrained", "pretrained-config", "label-space", "tokenizer", "examples")
    for name in inputs:
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--checkpoint", required=True, type=Path, help="resumable state")
    for name in ("model", "config", "curve"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    check_arguments(args, "tokenizer", "label-space", "examples", config=args.pretrained_config)

    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    model = load_model(args.pretrained, args.pretrained_config)
    tuning = FineTuning.of(p["teacher.fine_tuning"])
    validate = partial(
        validation_scores,
        examples=read_examples(args.examples, "validation"),
        tokenizer=tokenizer,
        space=space,
        max_new_tokens=p["traces.max_new_tokens"],
        batch_size=p["traces.batch_size"],
    )
    settings = WorldSettings.of(p["seed"], p["data.world"])
    frame = Frame.of(tokenizer, **p["data.prompt"])
    lists = []
    if "data.candidates" in p:
        lists = CandidateLists.of(space, frame, p["data.candidates"], p["seed"])
    draw = partial(
        draw_lessons,
        space,
        settings,
        tokenizer,
        frame,
        lists,
        tuning.decision_weight,
        tuning.batch_size,
    )
    files = [getattr(args, name.replace("-", "_")) for name in inputs]
    checkpoint = Checkpoint(args.checkpoint, run_identity(args.params, files))
    curve = fine_tune(
        model,
        draw,
        tuning,
        checkpoint,
        validate,
        pad_id=tokenizer.pad_token_id,
        seed=p["teacher.seed"],
    )
    require_score(curve, "micro_f1", "teacher.fine_tuning", tuning.target_micro_f1)
    save_model(model, args.model, args.config)
    write_table(args.curve, curve)
    checkpoint.discard()


if __name__ == "__main__":
    main()
