"""Train a sentence encoder of reasonings from upper layers of the teacher (SemCoT, first stage).

Arguments: --model, --config (the teacher's), --traces, --tokenizer.
Outputs: --encoder (encoder.safetensors: weights, and the embedding of each training trace's
reasoning), --curve (learning_curve.parquet: stage, epoch, training, validation).
Parameters: distil.semcot.encoder.
"""

import argparse

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.reasoning_encoder import EncoderSettings, train_encoder, write_encoder
from mechdistill.distil.sequences import usable
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("encoder", "curve"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    check_arguments(args, "config", "tokenizer", "traces", split="training")
    encoded, curve = train_encoder(
        load_model(args.model, args.config),
        [trace for trace in read_traces(args.traces, "training") if usable(trace)],
        load_tokenizer(args.tokenizer),
        EncoderSettings.of(p["distil.semcot.encoder"]),
    )
    write_encoder(args.encoder, encoded)
    write_table(args.curve, curve)


if __name__ == "__main__":
    main()
