"""Train the teacher from scratch on fresh notes and templated reasoning.

Inputs: --label-space, --tokenizer, --examples (validation notes), --checkpoint (resumable state; no
output: removed when the training is finished).
Outputs: --model (weights), --config, --curve (step, metric, value).
Parameters: seed, data.world, data.candidates (where lists are long), teacher.seed,
teacher.architecture, teacher.training, traces.max_new_tokens, traces.batch_size.
"""

import argparse
from functools import partial
from pathlib import Path

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.candidates import CandidateLists
from mechdistill.data.examples import NO_FRAME, read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.identity import run_identity
from mechdistill.models.loading import build_model, save_model
from mechdistill.models.pretraining import (
    MAX_POSITIONS,
    TeacherTraining,
    draw_texts,
    require_score,
    train_teacher,
)
from mechdistill.parameters import Parameters
from mechdistill.traces.quality import validation_scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("label-space", "tokenizer", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--checkpoint", required=True, type=Path, help="resumable state")
    for name in ("model", "config", "curve"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    training = TeacherTraining.of(p["teacher.training"])
    model = build_model(
        p["teacher.architecture"],
        vocab_size=len(tokenizer),
        pad_id=tokenizer.pad_token_id,
        bos_id=tokenizer.bos_token_id,
        eos_id=tokenizer.eos_token_id,
        max_positions=MAX_POSITIONS,
        seed=p["teacher.seed"],
    )
    settings = WorldSettings.of(p["seed"], p["data.world"])
    validate = partial(
        validation_scores,
        examples=read_examples(args.examples, "validation"),
        tokenizer=tokenizer,
        space=space,
        max_new_tokens=p["traces.max_new_tokens"],
        batch_size=p["traces.batch_size"],
    )
    inputs = [args.label_space, args.tokenizer, args.examples]
    checkpoint = Checkpoint(args.checkpoint, run_identity(args.params, inputs))
    lists = []
    if "data.candidates" in p:
        lists = CandidateLists.of(space, NO_FRAME, p["data.candidates"], p["seed"])
    draw = partial(
        draw_texts,
        space,
        settings,
        tokenizer,
        lists,
        training.batch_size,
        training.listing_share,
    )
    curve = train_teacher(model, draw, training, checkpoint, validate, p["teacher.seed"])
    require_score(curve, "micro_f1", "teacher.training", training.target_micro_f1)
    save_model(model, args.model, args.config)
    write_table(args.curve, curve)
    checkpoint.discard()


if __name__ == "__main__":
    main()
