"""Draw random heads in place of a model's pools: the control of what the choice of heads is worth.

Inputs: --pools, --config (of the model).
Outputs: --random-pools (as many heads a phase, outside the pool, with the pool's weights).
Parameters: heads.seed.
"""

import argparse

from mechdistill.data.one_world import check_arguments
from mechdistill.heads.pools import random_pools, read_pools, write_pools
from mechdistill.models.shape import layers_and_heads
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("pools", "config"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--random-pools", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "config", "pools")
    layers, heads = layers_and_heads(args.config)
    pools = random_pools(read_pools(args.pools), layers, heads, p["heads.seed"])
    write_pools(args.random_pools, pools, {1: [], 2: []})


if __name__ == "__main__":
    main()
