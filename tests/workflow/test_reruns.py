"""A change reruns the jobs that it can change and what follows from them, and nothing else.

Every expected set is derived by hand from the graph of the study.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import REPOSITORY, STUDY, Checkout

pytestmark = pytest.mark.workflow

SEEDS = (0, 1)
MODELS = ("teacher", *(f"{method}-seed{seed}" for method in ("vanilla", "mech") for seed in SEEDS))

SCORING = {f"score_model {model}" for model in MODELS}
BASES = {f"train_base_student {seed}" for seed in SEEDS}
STUDENT_POOLS = {f"pool_student_heads {seed}" for seed in SEEDS}
DATA = {"make_label_space", "make_examples", "make_twins", "write_data_card"}
PATCHING_FIGURES = {"draw_patching 5", "draw_patching 8"}
HEAD_EFFECTS = {
    *("calibrate_heads", "draw_head_effects", "attend_at_events", "draw_event_attention"),
    *("calibrate_elicitation", "draw_elicitation"),
}
ELICITATION = {"probe_regions", "ablate_before_events"}
HEAD_SETS = {"ablate_head_sets", "draw_head_sets", "knock_in_heads", "draw_knock_in"}
PAGES = {"write_report", "audit_results"}
CONCLUSIONS = {"judge_claims", *PAGES}
AFTER_SCORES = {"collect_scores", "compare_methods", "make_tables", "draw_curves", *CONCLUSIONS}
AFTER_RANKINGS = {
    *("patch_margin", "patch_generated", "summarise_patching"),
    *(*PATCHING_FIGURES, *CONCLUSIONS),
}


def students(*methods: str) -> set[str]:
    """The students of some methods, from training to scores and budgets."""
    jobs = {"make_budget", "simulate_answers"}
    for method in methods:
        for seed in SEEDS:
            jobs |= {
                f"train_student {method} {seed}",
                f"decode_model {method}-seed{seed}",
                f"score_model {method}-seed{seed}",
            }
    return jobs


AFTER_TRACES = {
    *("score_heads", "rank_heads", "make_pools", "watch_heads", "agree_with_causal_effects"),
    *("find_events", "ablate_heads", *HEAD_EFFECTS, *HEAD_SETS, *ELICITATION),
    *("check_corruptions", "patch_single_heads", *AFTER_RANKINGS),
    *("draw_coarse_heads", "draw_refine_heads", "train_simulator"),
    *("cache_targets", *STUDENT_POOLS, *students("vanilla", "mech"), *SCORING, *AFTER_SCORES),
}
FROM_TEACHER = {
    *("train_teacher", "generate_teacher_traces", "decode_model teacher", *AFTER_TRACES),
}
EVERYTHING = DATA | BASES | FROM_TEACHER

PARAMETERS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "weight of a loss of mech": (
        {"distil.lambda_p2": 0.7},
        students("mech") | AFTER_SCORES,
    ),
    "what the cached targets keep": (
        {"distil.teacher_top_k": 5},
        {"cache_targets"} | students("vanilla", "mech") | AFTER_SCORES,
    ),
    "heads in a pool": (
        {"heads.pool_size": 1},
        {"make_pools", "agree_with_causal_effects", "cache_targets", *HEAD_EFFECTS}
        | STUDENT_POOLS
        | students("vanilla", "mech")
        | SCORING
        | AFTER_SCORES,
    ),
    "level of false discoveries": (
        {"patching.false_discovery": 0.1},
        {*HEAD_EFFECTS, *CONCLUSIONS},
    ),
    "random draws of patching": ({"patching.random_draws": 2}, AFTER_RANKINGS | HEAD_SETS),
    "steps of the simulator": (
        {"evaluate.simulator.steps": 50},
        {"train_simulator", "simulate_answers"} | AFTER_SCORES,
    ),
    "bins of the curves": ({"evaluate.curve_bins": 7}, SCORING | AFTER_SCORES),
    "level of the tests": (
        {"significance.alpha": 0.01},
        {"compare_methods", "make_tables"} | CONCLUSIONS,
    ),
    "note that the report reads through": (
        {"report.worked_example": 1},
        {"watch_heads", "draw_coarse_heads", "draw_refine_heads"} | CONCLUSIONS,
    ),
    "steps of the teacher": ({"teacher.training.steps": 240}, FROM_TEACHER),
    "notes of the test split": (
        {"data.splits.test": 23},
        EVERYTHING - {"make_label_space"} - BASES,
    ),
    "root seed": ({"seed": 8}, EVERYTHING),
    "one more seed": (
        {"distil.seeds": [0, 1, 2]},
        {"train_base_student 2", "pool_student_heads 2", "make_budget"}
        | {f"train_student {method} 2" for method in ("vanilla", "mech")}
        | {f"decode_model {method}-seed2" for method in ("vanilla", "mech")}
        | {"simulate_answers"}
        | {f"score_model {method}-seed2" for method in ("vanilla", "mech")}
        | AFTER_SCORES,
    ),
}

CODE: dict[str, set[str]] = {
    "data/card.py": {"write_data_card", *PAGES},
    "data/pretraining.py": BASES | STUDENT_POOLS | students("vanilla", "mech") | AFTER_SCORES,
    "models/cache.py": {"patch_generated", "summarise_patching"} | PATCHING_FIGURES | CONCLUSIONS,
    "models/text_encoder.py": {"check_corruptions", "patch_generated", "summarise_patching"}
    | {"train_simulator", "simulate_answers"}
    | PATCHING_FIGURES
    | SCORING
    | AFTER_SCORES,
    "traces/quality.py": FROM_TEACHER,
    "traces/trie.py": {
        "find_events",
        "ablate_heads",
        *HEAD_EFFECTS,
        *HEAD_SETS,
        *ELICITATION,
        *CONCLUSIONS,
    },
    "patching/calibration.py": {*HEAD_EFFECTS, *CONCLUSIONS},
    "heads/reliability.py": {"rank_heads"} | AFTER_RANKINGS,
    "patching/summary.py": {"summarise_patching", *PAGES} | PATCHING_FIGURES,
    "distil/methods/mech.py": students("mech") | AFTER_SCORES,
    "distil/methods/vanilla.py": students("vanilla") | AFTER_SCORES,
    "distil/methods/p1_only.py": set(),
    "evaluate/curves.py": SCORING | AFTER_SCORES,
    "evaluate/las_scores.py": {"train_simulator", "simulate_answers"} | AFTER_SCORES,
    "models/text_to_text.py": {"train_simulator", "simulate_answers"} | AFTER_SCORES,
    "significance/measures.py": AFTER_SCORES,
    "report/page/captions.py": PAGES,
    "audit/page.py": {"audit_results"},
}
EVERY_PACKAGE = (
    *("data/notes.py", "models/tap.py", "traces/parse.py", "heads/refine.py"),
    *("patching/pairs.py", "distil/trainer.py", "evaluate/focus.py", "significance/holm.py"),
    *("report/verdicts.py", "artifacts.py"),
)


def change(checkout: Checkout, values: Mapping[str, Any]) -> None:
    """Give dotted keys other values in the file of the study."""
    file = checkout.root / "studies" / f"{STUDY}.yaml"
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    for key, value in values.items():
        section = content
        *path, last = key.split(".")
        for name in path:
            section = section.setdefault(name, {})
        section[last] = value
    file.write_text(yaml.safe_dump(content), encoding="utf-8")


def append(checkout: Checkout, module: str, line: str) -> None:
    """Add a line to a module of the package."""
    # "r+": a name that is no file must fail, and not become a new one
    with (checkout.root / "src" / "mechdistill" / module).open("r+", encoding="utf-8") as file:
        file.seek(0, os.SEEK_END)
        file.write(f"\n\n{line}\n")


@pytest.fixture
def checkout(shared_copy: Checkout) -> Checkout:
    """The finished study; its sources and parameters are put back after every test."""
    return shared_copy


@pytest.fixture(autouse=True)
def put_back(checkout: Checkout) -> Any:
    """Restore the contents of sources and studies."""
    folders = (checkout.root / "src", checkout.root / "studies")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    kept = {path: path.read_bytes() for path in [*files, checkout.root / "params.yaml"]}
    yield
    for path, content in kept.items():
        if path.read_bytes() != content:
            path.write_bytes(content)


@pytest.mark.parametrize("module", [*CODE, *EVERY_PACKAGE])
def test_modules_named_here_exist(module: str) -> None:
    assert (REPOSITORY / "src" / "mechdistill" / module).is_file()


def test_finished_study_has_nothing_to_do(checkout: Checkout) -> None:
    assert checkout.planned() == set()


@pytest.mark.parametrize("name", PARAMETERS)
def test_changed_parameter(checkout: Checkout, name: str) -> None:
    values, expected = PARAMETERS[name]
    change(checkout, values)
    assert checkout.planned() == expected


def test_two_parameters_that_swap_their_values(checkout: Checkout) -> None:
    study = yaml.safe_load((checkout.root / "studies" / f"{STUDY}.yaml").read_text())
    examples, bins = (study["evaluate"][key] for key in ("curve_examples", "curve_bins"))
    assert examples != bins
    change(checkout, {"evaluate.curve_examples": bins, "evaluate.curve_bins": examples})
    assert checkout.planned() == SCORING | AFTER_SCORES


@pytest.mark.parametrize("module", CODE)
def test_changed_line_of_code(checkout: Checkout, module: str) -> None:
    append(checkout, module, "ADDED = 1")
    assert checkout.planned() == CODE[module]


def test_changed_comments_and_docstrings_rerun_nothing(checkout: Checkout) -> None:
    for module in EVERY_PACKAGE:
        append(checkout, module, "# a remark")
    for script in (checkout.root / "workflow" / "scripts").glob("*.py"):
        text = script.read_text(encoding="utf-8")
        script.write_text(text.replace('"""', '"""Once more: ', 1), encoding="utf-8")
    assert checkout.planned() == set()


def test_changed_layout_of_parameters_reruns_nothing(checkout: Checkout) -> None:
    for name in ("params.yaml", f"studies/{STUDY}.yaml"):
        file = checkout.root / name
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        text = yaml.safe_dump(dict(reversed(content.items())), default_flow_style=True)
        file.write_text(f"# another order and style\n{text}", encoding="utf-8")
    assert checkout.planned() == set()


def test_other_file_times_rerun_nothing(checkout: Checkout) -> None:
    draw = random.Random(0)
    folders = ("src", "studies", "workflow", "results")
    files = [path for folder in folders for path in (checkout.root / folder).rglob("*")]
    now = time.time()
    for path in filter(Path.is_file, files):
        os.utime(path, (now, now - draw.randrange(10**7)))
    assert checkout.planned() == set()


@pytest.mark.parametrize("options", [("--cores", "7"), ("--profile", "slurm")])
def test_another_machine_reruns_nothing(
    smoke: Checkout, checkout: Checkout, tmp_path: Path, options: tuple[str, str]
) -> None:
    assert checkout.root != smoke.root  # where the study was run
    other = {
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "LANG": "tr_TR.UTF-8",
        "TZ": "Asia/Tokyo",
    }
    command = ("snakemake", "-n", "--config", f"study={STUDY}", *options)
    done = checkout.run(*command, variables=other | {"OMP_NUM_THREADS": "3"})
    assert done.returncode == 0, done.stdout
    assert "Nothing to be done" in done.stdout, done.stdout


def test_new_files_of_the_package_rerun_nothing(checkout: Checkout) -> None:
    new = checkout.root / "src" / "mechdistill" / "distil" / "methods" / "newcomer.py"
    old = (new.parent / "vanilla.py").read_text(encoding="utf-8")
    new.write_text(old.replace('"vanilla"', '"newcomer"'), encoding="utf-8")
    try:
        assert checkout.planned() == set()
    finally:
        new.unlink()
