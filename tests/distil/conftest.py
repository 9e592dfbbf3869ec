"""Tiny models and sequences for the distillation tests."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import Example, draw_cases, example_of, write_examples
from mechdistill.data.labels import LabelSpace, build_label_space, write_label_space
from mechdistill.data.tokenizer import (
    build_tokenizer,
    encode_trace,
    load_tokenizer,
    save_tokenizer,
)
from mechdistill.data.world import WorldSettings
from mechdistill.distil.methods import declared_needs, declared_parameters
from mechdistill.distil.samples import write_samples
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.heads.pools import Pool, Pools, write_pools
from mechdistill.models.loading import build_model, save_model
from mechdistill.traces.decision_events import FAMILIES
from mechdistill.traces.parse import RefinePosition, parse_trace
from mechdistill.traces.store import write_traces

VOCABULARY = 23
PAD, BOS, EOS = 0, 1, 2
SPECIAL = (PAD, BOS, EOS)


def architecture(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    """A parameter section as `distil.student`."""
    return {
        "family": "llama",
        "hidden_size": hidden,
        "layers": layers,
        "heads": heads,
        "kv_heads": 2,
        "head_dim": hidden // heads,
        "intermediate_size": 32,
        "rope_theta": 100.0,
    }


def tiny_model(
    seed: int, *, hidden: int = 24, layers: int = 2, heads: int = 4, **changes: Any
) -> Any:
    """A Llama with grouped queries whose weights are large enough for sharp attention.

    `changes` of its architecture make it a model of another family.
    """
    model = build_model(
        architecture(hidden, layers, heads) | changes,
        vocab_size=VOCABULARY,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        max_positions=64,
        seed=seed,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(12.0)
    return model.eval()


def pools_of(phase1: dict[tuple[int, int], float], phase2: dict[tuple[int, int], float]) -> Pools:
    """Pools with the given weight of each (layer, head)."""
    first, second = (
        Pool(
            phase,
            torch.tensor([layer for layer, _ in weights], dtype=torch.long),
            torch.tensor([head for _, head in weights], dtype=torch.long),
            torch.tensor(list(weights.values())),
        )
        for phase, weights in ((1, phase1), (2, phase2))
    )
    return Pools("tiny", first, second, margin_std=2.5)


def sequence(number: int, length: int, early: int, refine: int) -> TrainingSequence:
    """Random tokens: a prompt of 12, `early` early positions, `refine` refinement positions."""
    generator = torch.Generator().manual_seed(100 + number)
    tokens = [BOS, *torch.randint(3, VOCABULARY, (length - 1,), generator=generator).tolist()]
    predicting = tuple(range(11, length - 1))
    queries = [length - 2 - 3 * at for at in reversed(range(refine))]
    return TrainingSequence(
        example=f"training-{number}",
        tokens=tuple(tokens),
        predicting=predicting,
        weights=(1.0,) * len(predicting),
        teacher_rows=tuple(range(len(predicting))),
        early=predicting[:early],
        refine=tuple(
            RefinePosition(
                query=query,
                target=3 + at,
                foil=8 + at,
                clause=at,
                shortlist=(12, 13 + at),
                near_miss=(15,) if at % 2 else (15, 16),
            )
            for at, query in enumerate(queries)
        ),
    )


@pytest.fixture
def sequences() -> list[TrainingSequence]:
    """Unequal lengths and numbers of positions; one sequence without refinement positions."""
    return [sequence(0, 30, 6, 2), sequence(1, 24, 4, 0), sequence(2, 27, 5, 1)]


@pytest.fixture
def teacher() -> Any:
    return tiny_model(1, hidden=32, layers=3)


@pytest.fixture
def student() -> Any:
    return tiny_model(2)


@pytest.fixture
def teacher_pools() -> Pools:
    return pools_of({(0, 1): 0.5, (2, 0): 0.3, (2, 3): 0.2}, {(1, 2): 0.6, (2, 3): 0.4})


@pytest.fixture
def student_pools() -> Pools:
    return pools_of({(0, 0): 0.7, (1, 3): 0.3}, {(1, 1): 0.8, (1, 3): 0.2})


@dataclass(frozen=True)
class Study:
    """A folder with everything that a student is trained from; no teacher's weights among it."""

    folder: Path

    def data_arguments(self) -> list[str]:
        """Arguments that name the data files."""
        return self._arguments(
            {
                "--traces": "traces.parquet",
                "--examples": "examples.parquet",
                "--label-space": "label_space.json",
                "--tokenizer": "tokenizer.json",
            }
        )

    def student_arguments(
        self, out: Path, method: str, deepspeed: dict[str, Any] | None = None, **training: Any
    ) -> list[str]:
        """Arguments of train_student, results going to `out`."""
        values = {
            "distil.training": TRAINING | training,
            "distil.deepspeed": deepspeed,
            **METHOD_SETTINGS,
        }
        keys = ["distil.training", "distil.deepspeed", *declared_parameters(method)]
        files = {
            "--base": "base.safetensors",
            "--config": "base.json",
            "--pools": "student_pools.json",
            "--targets": "targets.safetensors",
        }
        results = {
            "--checkpoint": "checkpoint",
            "--model": "model.safetensors",
            "--model-config": "config.json",
            "--curve": "curve.parquet",
            "--budget": "budget.json",
        }
        needs = [str(self.folder / NEEDS[name]) for name in declared_needs(method)]
        return [
            *("--method", method, "--seed", "0"),
            *("--needs", *needs),
            *self._arguments(files),
            *self.data_arguments(),
            *(part for name, file in results.items() for part in (name, str(out / file))),
            *("--params", json.dumps({key: values[key] for key in keys})),
        ]

    def _arguments(self, files: dict[str, str]) -> list[str]:
        return [part for name, file in files.items() for part in (name, str(self.folder / file))]


METHOD_SETTINGS: dict[str, Any] = {
    "distil.lambda_kl": 0.5,
    "distil.lambda_p1": 0.3,
    "distil.lambda_p2": 0.2,
    "distil.position_weight": 3.0,
    "distil.unicott.structure": "tree",
    "distil.unicott.contrast": 0.5,
    "distil.unicott.spread": 0.2,
    "distil.unicott.temperature": 0.1,
    "distil.unicott.least_std": 1.0,
    "distil.morsd.least_f1": 0.5,
    "distil.morsd.keep_min": 1,
    "distil.morsd.most_alike": 0.7,
    "distil.morsd.difficulty": "lowest",
    "distil.morsd.share": 0.5,
    "distil.semcot.alpha": 0.5,
    "distil.semcot.positions": 3,
    "distil.cwt.chunks": 4,
    "distil.cwt.chunker": "search",
    "distil.cwt.with_kl": False,
    "distil.mistill.region": 0.3,
    "distil.mistill.within": 0.2,
    "distil.mistill.departure": 0.1,
}
"""A value of every parameter that a method declares."""
NEEDS = {
    "samples": "samples.parquet",
    "sample_targets": "sample_targets.safetensors",
    "difficulty": "difficulty.parquet",
    "reasoning_encoder": "encoder.safetensors",
    "event_targets": "event_targets.safetensors",
}
ENCODER = {
    "layers": 5,
    "dimension": 8,
    "batch_size": 4,
    "projection_epochs": 1,
    "projection_learning_rate": 0.003,
    "epochs": 1,
    "learning_rate": 0.0003,
}
TRAINING = {
    "steps": 24,
    "batch_size": 6,
    "learning_rate": 0.01,
    "adamw_learning_rate": 0.003,
    "warmup_steps": 4,
    "clip": 1.0,
    "checkpoint_every": 5,
    "weights": "float32",
}
ROOT = Path(__file__).parents[2]


def head_effects() -> pd.DataFrame:
    """Of a teacher of 2 layers: three heads count at regions in the reasoning, one elsewhere."""
    counting = {
        ("region", "reasoning"): {(0, 1): 3.0, (1, 2): 1.0, (1, 3): 0.5},
        ("within", "reasoning"): {(1, 0): 2.0},
    }
    rows = [
        {
            **{"kind": kind, "segment": segment, "layer": layer, "head": head},
            "excess": counting.get((kind, segment), {(0, 2): 1.5}).get((layer, head), -0.1),
            "above_null": (layer, head) in counting.get((kind, segment), {(0, 2): 1.5}),
        }
        for kind, segment in FAMILIES
        for layer in range(2)
        for head in range(4)
    ]
    return pd.DataFrame(rows)


def run_script(name: str, arguments: list[str]) -> None:
    """Run a workflow script in this process and leave torch's settings as they were."""
    script = runpy.run_path(str(ROOT / "workflow" / "scripts" / f"{name}.py"))
    threads = torch.get_num_threads()
    before, sys.argv = sys.argv, [name, *arguments]
    try:
        script["main"]()
    finally:
        sys.argv = before
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A world of five regions, reference traces as the teacher's, a random teacher's targets."""
    folder = tmp_path_factory.mktemp("study")
    study = Study(folder)
    space = build_label_space(7, 5, 3, 4, 1)
    write_label_space(folder / "label_space.json", space)
    save_tokenizer(folder / "tokenizer.json", build_tokenizer(space))
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    world = {"regions": 5, "groups_in_context": 4, "problems_min": 1, "problems_max": 2}
    settings = WorldSettings.of(7, world)
    cases = draw_cases(space, settings, {"training": 14, "validation": 3, "ranking": 6}, 7)
    examples = [example_of(case, name, split) for name, split, case in cases]
    write_examples(folder / "examples.parquet", examples)
    write_traces(
        folder / "traces.parquet",
        [
            parse_trace(e, encode_trace(tokenizer, e.reference), tokenizer, space, 8)
            for e in examples
        ],
    )
    _write_teacher(folder / "teacher.safetensors", folder / "teacher.json", len(tokenizer))
    pools = pools_of({(0, 1): 0.6, (1, 2): 0.4}, {(1, 0): 0.7, (1, 3): 0.3})
    write_pools(folder / "pools.json", pools, {1: [], 2: []})
    write_pools(folder / "student_pools.json", pools, {1: [], 2: []})
    run_script(
        "cache_targets",
        [
            *("--model", str(folder / "teacher.safetensors")),
            *("--config", str(folder / "teacher.json")),
            *("--pools", str(folder / "pools.json")),
            *study.data_arguments(),
            *("--targets", str(folder / "targets.safetensors")),
            *("--table", str(folder / "targets.parquet")),
            *(
                "--params",
                '{"distil.teacher_top_k": 8, "heads.minimum_keys": 8, "heads.batch_size": 5}',
            ),
        ],
    )
    _write_what_some_methods_need(study, examples, tokenizer, space)
    write_table(folder / "head_effects.parquet", head_effects())
    run_script(
        "cache_event_targets",
        [
            *("--model", str(folder / "teacher.safetensors")),
            *("--config", str(folder / "teacher.json")),
            *("--effects", str(folder / "head_effects.parquet")),
            *study.data_arguments(),
            *("--events", str(folder / NEEDS["event_targets"])),
            *("--params", '{"heads.pool_size": 2, "heads.batch_size": 5}'),
        ],
    )
    (folder / "teacher.safetensors").unlink()
    run_script(
        "train_base_student",
        [
            *("--seed", "0"),
            *("--label-space", str(folder / "label_space.json")),
            *("--tokenizer", str(folder / "tokenizer.json")),
            *("--checkpoint", str(folder / "base_checkpoint")),
            *("--model", str(folder / "base.safetensors")),
            *("--model-config", str(folder / "base.json")),
            *("--curve", str(folder / "base_curve.parquet")),
            *(
                "--params",
                json.dumps(
                    {
                        "seed": 7,
                        "data.world": world,
                        "distil.student": architecture(16, 2, 4),
                        "distil.base": TRAINING | {"steps": 6},
                    }
                ),
            ),
        ],
    )
    run_script(
        "measure_difficulty",
        [
            *("--base", str(folder / "base.safetensors"), "--config", str(folder / "base.json")),
            *("--traces", str(folder / "traces.parquet")),
            *("--samples", str(folder / NEEDS["samples"])),
            *("--examples", str(folder / "examples.parquet")),
            *("--tokenizer", str(folder / "tokenizer.json")),
            *("--difficulty", str(folder / NEEDS["difficulty"]), "--params", "{}"),
        ],
    )
    return study


def _write_what_some_methods_need(
    study: Study, examples: list[Example], tokenizer: Any, space: LabelSpace
) -> None:
    """Two more traces of each training note: the reference again, and one that keeps the other
    code in its first clause.
    """
    training = [example for example in examples if example.split == "training"]
    drawn = [
        (draw, parse_trace(e, encode_trace(tokenizer, text), tokenizer, space, 8))
        for draw in (1, 2)
        for e in training
        for text in [e.reference if draw == 1 else _mistaken(e, space)]
    ]
    write_samples(study.folder / NEEDS["samples"], drawn)
    teacher = [
        *("--model", str(study.folder / "teacher.safetensors")),
        *("--config", str(study.folder / "teacher.json")),
        *("--tokenizer", str(study.folder / "tokenizer.json")),
    ]
    run_script(
        "cache_sample_targets",
        [
            *teacher,
            *("--samples", str(study.folder / NEEDS["samples"])),
            *("--targets", str(study.folder / NEEDS["sample_targets"])),
            *(
                "--params",
                '{"distil.teacher_top_k": 8, "heads.minimum_keys": 8, "heads.batch_size": 5}',
            ),
        ],
    )
    run_script(
        "train_reasoning_encoder",
        [
            *teacher,
            *("--traces", str(study.folder / "traces.parquet")),
            *("--encoder", str(study.folder / NEEDS["reasoning_encoder"])),
            *("--curve", str(study.folder / "encoder_curve.parquet")),
            *("--params", json.dumps({"distil.semcot.encoder": ENCODER})),
        ],
    )


def _mistaken(example: Example, space: LabelSpace) -> str:
    gold, near = (space.label(code).text for code in (example.gold[0], example.near[0]))
    head, verdict, rest = example.reference.partition("=>")
    return head + verdict + rest.replace(gold, "~").replace(near, gold).replace("~", near)


def _write_teacher(weights: Path, config: Path, vocabulary: int) -> None:
    teacher = build_model(
        architecture(32, 2, 4),
        vocab_size=vocabulary,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        max_positions=256,
        seed=3,
    )
    save_model(teacher, weights, config)
