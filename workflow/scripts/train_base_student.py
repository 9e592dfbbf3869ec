"""Train the base student of one seed on notes and label names, without reasoning.

Arguments: --seed, --label-space, --tokenizer, --checkpoint (resumable state; not an output:
removed when the training is finished).
Outputs: --model (weights), --model-config (configuration), --curve (learning curve: step, metric,
value, weight).
Parameters: seed, data.world, distil.student, distil.base.
"""

import argparse
from pathlib import Path

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.labels import read_label_space
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.distil.base_student import MAX_POSITIONS, LanguageModelling, stream
from mechdistill.distil.engine import OneProcess
from mechdistill.distil.trainer import TrainingSettings, optimiser_of, train
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.identity import run_identity
from mechdistill.models.loading import build_model, save_model
from mechdistill.models.precision import to_precision
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", required=True, type=int, help="of weights and texts")
    for name in ("label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--checkpoint", required=True, type=Path, help="resumable state")
    for name in ("model", "model-config", "curve"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    settings = TrainingSettings.of(p["distil.base"])
    tokenizer = load_tokenizer(args.tokenizer)
    model = build_model(
        p["distil.student"],
        vocab_size=len(tokenizer),
        pad_id=tokenizer.pad_token_id,
        bos_id=tokenizer.bos_token_id,
        eos_id=tokenizer.eos_token_id,
        max_positions=MAX_POSITIONS,
        seed=args.seed,
    )
    model = to_precision(model, settings.weights)
    texts = stream(
        read_label_space(args.label_space),
        WorldSettings.of(p["seed"], p["data.world"]),
        tokenizer,
        batch_size=settings.batch_size,
        seed=args.seed,
    )
    objective = LanguageModelling(model, texts, tokenizer.pad_token_id)
    identity = run_identity(f"{args.seed} {args.params}", [args.label_space, args.tokenizer])
    checkpoint = Checkpoint(args.checkpoint, identity)
    engine = OneProcess(model, optimiser_of(model, settings), checkpoint, settings.clip)
    history, _ = train(engine, objective, settings, "base student step")
    save_model(to_precision(model, "float32"), args.model, args.model_config)
    write_table(args.curve, history.frame())
    checkpoint.discard()


if __name__ == "__main__":
    main()
