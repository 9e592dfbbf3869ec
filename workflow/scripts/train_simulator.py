"""Train the simulator of LAS on the teacher's reasoning.

Inputs: --traces (the teacher's: training and validation), --examples, --label-space, --tokenizer.
Outputs: --simulator (simulator.safetensors), --validation (validation.parquet: split, example,
metric, value: what it makes of the teacher's reasoning on notes that it was not trained on).
Parameters: evaluate.simulator, text_encoder.name, text_encoder.sha256, text_encoder.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.evaluate.las_scores import simulatability_scores
from mechdistill.evaluate.simulatability import lessons, rationale, simulate
from mechdistill.evaluate.simulators import SimulatorSettings
from mechdistill.evaluate.simulators.files import train_simulator, write_simulator
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("traces", "examples", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("simulator", "validation"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    for split in ("training", "validation"):
        check_arguments(args, "tokenizer", "label-space", "examples", "traces", split=split)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    space, tokenizer = read_label_space(args.label_space), load_tokenizer(args.tokenizer)
    examples = {example.example: example for example in read_examples(args.examples)}
    settings = SimulatorSettings.of(p["evaluate.simulator"])
    encoder = TextEncoder.packaged(
        p["text_encoder.name"], p["text_encoder.sha256"], p["text_encoder.batch_size"]
    )
    training = read_traces(args.traces, "training")[: settings.notes]
    labels = [label.code for label in space.labels]
    simulator = train_simulator(
        lessons(examples, training, tokenizer, space, settings.strip_labels),
        labels,
        encoder,
        settings,
    )
    write_simulator(args.simulator, simulator)
    held_out = {
        trace.example: rationale(trace, tokenizer, space, settings.strip_labels)
        for trace in read_traces(args.traces, "validation")
    }
    answers = simulate(simulator, examples, {("teacher", "teacher", 0): held_out})
    scores = simulatability_scores(answers, labels)
    write_table(args.validation, scores[["example", "metric", "value"]])


if __name__ == "__main__":
    main()
