"""Let one model write its reasoning for the test and validation notes, greedily, and parse it.

Arguments: --model, --config (weights and configuration), --tokenizer, --label-space, --examples;
--name, --method, --seed: what the rows are labelled with ("mech-seed0", "mech", 0; the teacher is
"teacher", "teacher", teacher.seed).
Outputs: --traces (traces.parquet, test), --predictions (predictions.parquet, test),
--validation-predictions (same columns, validation: only for choosing the best baseline).
Parameters: traces.early_tokens, traces.max_new_tokens, traces.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.evaluate.predictions import prediction_table
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.generate import generate_traces
from mechdistill.traces.store import write_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "tokenizer", "label-space", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--name", required=True, help="of the model")
    parser.add_argument("--method", required=True, help="that trained it")
    parser.add_argument("--seed", required=True, type=int, help="it was trained with")
    for name in ("traces", "predictions", "validation-predictions"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space", "examples")
    model, tokenizer = load_model(args.model, args.config), load_tokenizer(args.tokenizer)
    space = read_label_space(args.label_space)
    codes = {label.code for label in space.labels}
    for split, path in (("test", args.predictions), ("validation", args.validation_predictions)):
        examples = read_examples(args.examples, split)
        traces = generate_traces(
            model,
            examples,
            tokenizer,
            space,
            early_tokens=p["traces.early_tokens"],
            max_new_tokens=p["traces.max_new_tokens"],
            batch_size=p["traces.batch_size"],
            what=f"{args.name}: {split} traces",
        )
        if split == "test":
            write_traces(args.traces, traces)
        table = prediction_table(traces, examples, codes, args.name, args.method, args.seed)
        write_table(path, table)


if __name__ == "__main__":
    main()
