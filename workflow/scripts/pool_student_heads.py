"""Choose a base student's head pools by its own scores on the ranking traces of the teacher.

Arguments: --base, --config (weights and configuration of the base student), --traces, --examples,
--label-space, --tokenizer.
Outputs: --pools (pools.json of the student at step 0, with the unit of its margins).
Parameters: heads.pool_size, heads.pool_temperature, heads.minimum_keys, heads.batch_size.
"""

import argparse

import torch

from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.heads.find import find_pools
from mechdistill.heads.pools import write_pools
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("base", "config", "traces", "examples", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--pools", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(
        args, "config", "tokenizer", "label-space", "examples", "traces", split="ranking"
    )
    pools = find_pools(
        load_model(args.base, args.config),
        read_traces(args.traces, "ranking"),
        read_examples(args.examples, "ranking"),
        read_label_space(args.label_space),
        load_tokenizer(args.tokenizer),
        name="base",
        size=p["heads.pool_size"],
        temperature=p["heads.pool_temperature"],
        minimum_keys=p["heads.minimum_keys"],
        batch_size=p["heads.batch_size"],
    )
    write_pools(args.pools, pools, {1: [], 2: []})


if __name__ == "__main__":
    main()
