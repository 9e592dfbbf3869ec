"""Time of a mechanistic training step over that of a vanilla step, interleaved in one process.

    python benchmarks/mechanistic_step.py results/embedded --seed 0 --steps 20

Both methods train their own copy of the study's base student on the same batches; a step is
everything from collating the batch to the optimiser's update. Prints the median CPU time of each
method and the median, over steps, of the ratio: other load on the machine then hits both alike.
"""

import argparse
import statistics
import time
from pathlib import Path

import torch

from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.anchors import anchors_by_example
from mechdistill.distil.method import Student
from mechdistill.distil.methods import load_method
from mechdistill.distil.objective import Distillation
from mechdistill.distil.order import DataOrder
from mechdistill.distil.targets import read_targets
from mechdistill.heads.pools import read_pools
from mechdistill.models.loading import load_model
from mechdistill.models.optimiser import Optimiser
from mechdistill.traces.store import read_traces

SETTINGS = {"distil.lambda_kl": 1.0, "distil.lambda_p1": 0.3, "distil.lambda_p2": 0.3}
WARM_UP = 3


class Run:
    """One method's training, one timed step at a time."""

    def __init__(self, name: str, results: Path, seed: int, batch_size: int) -> None:
        base = results / "distil" / "base" / f"seed{seed}"
        self.model = load_model(base / "model.safetensors", base / "config.json").train()
        tokenizer = load_tokenizer(results / "data" / "tokenizer.json")
        examples = read_examples(results / "data" / "examples.parquet", "training")
        space = read_label_space(results / "data" / "label_space.json")
        anchors = anchors_by_example(self.model, examples, space, tokenizer)
        targets = read_targets(results / "distil" / "targets.safetensors")
        method = load_method(name)(SETTINGS)
        sequences = method.prepare(read_traces(results / "teacher" / "traces.parquet", "training"))
        pools = read_pools(base / "pools.json")
        student = Student(self.model, pools, anchors, targets.pool_sizes, targets.minimum_keys)
        method.start(student, sequences)
        order = DataOrder([len(s.tokens) for s in sequences], batch_size, seed)
        ids = tokenizer.pad_token_id, tokenizer.all_special_ids
        self.objective = Distillation(self.model, method, sequences, targets, order, *ids)
        self.objective.begin()
        self.optimiser = Optimiser(
            self.model, learning_rate=0.001, adamw_learning_rate=0.001, steps=1000, warmup_steps=0
        )

    def step(self, number: int) -> float:
        """CPU seconds of one training step."""
        start = time.process_time()
        terms, _ = self.objective.step(number)
        torch.stack([term.value * term.weight for term in terms.values()]).sum().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step(number)
        return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="folder of a study's results")
    parser.add_argument("--seed", type=int, default=0, help="base student")
    parser.add_argument("--steps", type=int, default=20, help="timed steps of each method")
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    torch.set_num_threads(1)
    names = ("vanilla", "mech")
    runs = [Run(name, args.results, args.seed, args.batch_size) for name in names]
    # the order alternates, so that neither method always finds the caches warm
    seconds = []
    for number in range(WARM_UP + args.steps):
        turn = runs if number % 2 else runs[::-1]
        times = [run.step(number) for run in turn]
        seconds.append(times if number % 2 else times[::-1])
    vanilla, mech = zip(*seconds[WARM_UP:], strict=True)
    for name, of in zip(names, (vanilla, mech), strict=True):
        print(f"{name}: {1000 * statistics.median(of):.1f} ms a step (median of {args.steps})")
    ratios = [b / a for a, b in zip(vanilla, mech, strict=True)]
    print(f"mech / vanilla: {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
