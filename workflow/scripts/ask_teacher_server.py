"""Let the teacher reason on every note, greedily, on a server that holds it, and parse the answers.

Inputs: --model (weights; the first answer is compared with them), --config, --label-space,
--tokenizer, --examples, --answers (finished answers; no output: removed when all are there).
Output: --traces (Parquet, all splits), as generate_teacher_traces writes it.
Parameters: teacher.seed, teacher.generation.server, traces.early_tokens, traces.max_new_tokens.
"""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from mechdistill.data.examples import Example, read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import encode_prompt, load_tokenizer
from mechdistill.models.identity import run_identity
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.provenance import services
from mechdistill.traces.generate import written_traces
from mechdistill.traces.served.answers import AnswerFile
from mechdistill.traces.served.ask import Decoding, ask_server
from mechdistill.traces.served.server import Prompt, ServerSettings, TeacherServer
from mechdistill.traces.store import write_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "label-space", "tokenizer", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--answers", required=True, type=Path, help="finished answers")
    parser.add_argument("--traces", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space", "examples")

    server = TeacherServer(ServerSettings.of(p["teacher.generation.server"]))
    decoding = Decoding(p["traces.max_new_tokens"], p["teacher.seed"])
    tokenizer = load_tokenizer(args.tokenizer)
    # neither the server's address nor how it is asked changes an answer
    asked = json.dumps([server.settings.model, decoding.max_new_tokens, decoding.seed])
    answers = AnswerFile(args.answers, run_identity(asked, [args.model, args.config]))

    def write(examples: Sequence[Example]) -> list[list[int]]:
        prompts = [
            Prompt(e.example, e.prompt, tuple(encode_prompt(tokenizer, e.prompt))) for e in examples
        ]
        own = partial(load_model, args.model, args.config)
        return ask_server(server, prompts, tokenizer, answers, decoding, own, "teacher trace")

    space, examples = read_label_space(args.label_space), read_examples(args.examples)
    traces = written_traces(write, examples, tokenizer, space, p["traces.early_tokens"])
    services.asked += answers.servers
    write_traces(args.traces, traces)
    answers.discard()


if __name__ == "__main__":
    main()
