"""Let the simulator answer the test notes with the reasoning of each model at hand.

Inputs: --traces and --predictions (of all models, in one order: the second name the models),
--simulator, --examples, --label-space, --tokenizers (the teacher's, and the students' where that is
another).
Output: --answers (simulatability.parquet: model, method, seed, example, gold, both, question,
reasoning, reasoned; columns in mechdistill.evaluate.simulatability).
Parameters: evaluate.simulator.strip_labels, text_encoder.name, text_encoder.sha256,
text_encoder.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.evaluate.simulatability import rationale, simulate
from mechdistill.evaluate.simulators.files import read_simulator
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces

TEACHER = "teacher"
"""Name of the one model that is no student."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("traces", "predictions"):
        parser.add_argument(f"--{name}", required=True, nargs="+", help="input, one a model")
    for name in ("simulator", "examples", "label-space"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--tokenizers", required=True, nargs="+", help="inputs")
    parser.add_argument("--answers", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    space = read_label_space(args.label_space)
    examples = {example.example: example for example in read_examples(args.examples, "test")}
    encoder = TextEncoder.packaged(
        p["text_encoder.name"], p["text_encoder.sha256"], p["text_encoder.batch_size"]
    )
    rationales = {}
    for traces, predictions in zip(args.traces, args.predictions, strict=True):
        who = read_table(predictions).iloc[0]
        file = args.tokenizers[0 if who["model"] == TEACHER else -1]
        check_arguments(
            args, "label-space", "examples", traces=traces, tokenizer=file, split="test"
        )
        tokenizer = load_tokenizer(file)
        rationales[who["model"], who["method"], int(who["seed"])] = {
            trace.example: rationale(trace, tokenizer, space, p["evaluate.simulator.strip_labels"])
            for trace in read_traces(traces, "test")
        }
    answers = simulate(read_simulator(args.simulator, encoder), examples, rationales)
    write_table(args.answers, answers)


if __name__ == "__main__":
    main()
