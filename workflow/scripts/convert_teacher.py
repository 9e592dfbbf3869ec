"""Turn the study's checkpoint into plain weights, configuration and tokenizer.

Outputs: --model (weights, fp32), --config, --tokenizer.
Parameters: teacher.checkpoint.
"""

import argparse

import torch

from mechdistill.data.tokenizer import save_tokenizer
from mechdistill.models.checkpoint_files import Checkpoint, checked_folder
from mechdistill.models.conversion import plain_model, plain_tokenizer
from mechdistill.models.loading import save_model
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)

    checkpoint = Checkpoint.of(p["teacher.checkpoint"])
    folder = checked_folder(checkpoint)
    save_tokenizer(args.tokenizer, plain_tokenizer(folder, checkpoint.gguf))
    save_model(plain_model(folder, checkpoint.gguf), args.model, args.config)


if __name__ == "__main__":
    main()
