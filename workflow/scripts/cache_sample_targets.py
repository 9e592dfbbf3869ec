"""Run the teacher over its sampled traces once and keep its distributions on them.

Arguments: --model, --config (the teacher's), --samples, --tokenizer.
Output: --targets (as targets.safetensors, without signals of heads: pools are empty).
Parameters: distil.teacher_top_k, heads.minimum_keys, heads.batch_size.
"""

import argparse

import torch

from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.caching import cache_targets
from mechdistill.distil.samples import read_samples, whole_sample
from mechdistill.distil.sequences import usable
from mechdistill.distil.targets import write_targets
from mechdistill.heads.pools import no_pools
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "samples", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--targets", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", traces=args.samples)
    tokenizer = load_tokenizer(args.tokenizer)
    targets = cache_targets(
        load_model(args.model, args.config),
        [whole_sample(*sample) for sample in read_samples(args.samples) if usable(sample[1])],
        {},
        no_pools("teacher"),
        top_k=p["distil.teacher_top_k"],
        minimum_keys=p["heads.minimum_keys"],
        batch_size=p["heads.batch_size"],
        pad_id=tokenizer.pad_token_id,
        special_ids=tokenizer.all_special_ids,
    )
    write_targets(args.targets, targets)


if __name__ == "__main__":
    main()
