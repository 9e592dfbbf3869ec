"""ZeRO-3 against the plain trainer on CPU: the same losses, and nothing lost by a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from mechdistill.artifacts import read_json, read_table, read_tensors
from mechdistill.distil.batch import collate
from mechdistill.distil.placing import placed
from mechdistill.distil.processes import Process
from mechdistill.distil.zero import Zero, ZeroSettings, start_deepspeed
from mechdistill.errors import InputError
from tests.distil.conftest import PAD, ROOT, SPECIAL, Study, sequence
from tests.distil.zero_worker import CASES, SETTINGS, ZERO, run

pytest.importorskip("deepspeed")

TOLERANCE = 1e-3
"""Of losses, relative: rounding, which AdamW's first steps make larger."""
TWO = ("vanilla", "mech", "p2_only", "checkpointing", "gemma2", "stopped", "resumed", "left")
ONE = ("fewer", "vanilla_margin", "without_offload", "bfloat16")
DEEPSPEED = {
    "micro_batch": 3,
    "precision": "float32",
    "offload": True,
    "gradient_checkpointing": False,
}


def processes(count: int, script: Path, *arguments: str, folder: Path) -> str:
    """Run a script under torchrun, where no compiler is to be found; what it prints."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "OMP_NUM_THREADS": "1",
        "PATH": str(Path(sys.executable).parent),
        "TORCH_EXTENSIONS_DIR": str(folder / "compiled"),
    }
    starter = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    done = subprocess.run(
        [sys.executable, "-m", *starter, str(script), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two processes' and one process's trainings."""
    folder = tmp_path_factory.mktemp("zero")
    worker = ROOT / "tests" / "distil" / "zero_worker.py"
    processes(2, worker, str(folder), *TWO, folder=folder)
    told = processes(1, worker, str(folder), *ONE, folder=folder)
    (folder / "told").write_text(told, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for case in ("vanilla", "mech", "p2_only", "vanilla_margin", "gemma2"):
        run(folder, case, **CASES[case] | {"zero": None})
    torch.set_num_threads(threads)
    return folder


def values(folder: Path, case: str) -> dict[tuple[int, str], float]:
    history = read_json(folder / f"{case}.json")["history"]
    return {(step, metric): value for step, metric, value, _ in history}


@pytest.mark.parametrize(
    ("case", "same"),
    [
        ("vanilla", "vanilla"),
        ("mech", "mech"),
        ("p2_only", "p2_only"),
        ("vanilla_margin", "vanilla_margin"),
        ("checkpointing", "mech"),
        ("without_offload", "mech"),
        ("gemma2", "gemma2"),
    ],
)
def test_losses_are_those_of_the_plain_trainer(
    trained: Path, plain: Path, case: str, same: str
) -> None:
    """Every term, the norm before clipping and the rate, at every step."""
    found, expected = values(trained, case), values(plain, same)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=TOLERANCE, abs=1e-6), key
    assert any(value > SETTINGS.clip for (_, name), value in expected.items() if "norm" in name)


def test_steps_and_tokens_are_counted_once_for_all_processes(trained: Path, plain: Path) -> None:
    for amount in ("steps", "sequences", "target_tokens", "forward_tokens"):
        counts = [read_json(folder / "mech.json")["spent"][amount] for folder in (trained, plain)]
        assert counts[0] == counts[1]


def test_matrices_are_partitioned(trained: Path) -> None:
    for case in ("vanilla", "mech", "gemma2"):
        content = read_json(trained / f"{case}.json")
        assert content["partitioned"] == content["matrices"] > 10


def test_weights_in_half_precision_follow_the_exact_ones(trained: Path, plain: Path) -> None:
    found, expected = values(trained, "bfloat16"), values(plain, "mech")
    totals = [(found[key], expected[key]) for key in expected if key[1] == "total"]
    assert all(a == pytest.approx(b, rel=0.1) for a, b in totals)
    weights, _ = read_tensors(trained / "bfloat16.safetensors")
    assert all(weight.dtype == torch.float32 for weight in weights.values())
    assert any((weight != weight.bfloat16().float()).any() for weight in weights.values())


def test_a_stopped_training_goes_on_to_the_same_weights(trained: Path) -> None:
    whole, _ = read_tensors(trained / "mech.safetensors")
    again, _ = read_tensors(trained / "resumed.safetensors")
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert values(trained, "mech") == values(trained, "resumed")
    engine = read_json(trained / "resumed.json")["engine"]
    assert engine["resumed"] == [{"step": 2, "processes": 2, "kept": "all"}]


def test_another_number_of_processes_takes_up_the_weights_and_says_so(
    trained: Path, plain: Path
) -> None:
    assert read_json(trained / "fewer.json")["engine"] == {
        "processes": 1,
        "resumed": [{"step": 4, "processes": 1, "kept": "weights"}],
    }
    assert "step 4: saved by 2 processes, now 1: weights are taken up" in (
        trained / "told"
    ).read_text(encoding="utf-8")
    found, expected = values(trained, "fewer"), values(plain, "mech")
    assert found.keys() == expected.keys()
    assert found[4, "total"] == pytest.approx(expected[4, "total"], rel=TOLERANCE)
    weights = [read_tensors(trained / f"{case}.safetensors")[0] for case in ("fewer", "mech")]
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_nothing_is_compiled(trained: Path) -> None:
    """A build that is cut off leaves a lock behind, and later runs wait for it without a word."""
    assert not (trained / "compiled").exists()


def test_half_precision_of_gpus_is_refused_without_one() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match="float16, and there is no GPU"):
        start_deepspeed("float16")


def test_batches_that_cannot_be_shared_out_are_refused(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert Process.here() == Process(0, 3)
    with pytest.raises(InputError, match="8 sequences cannot be shared out evenly among 3"):
        Zero(None, ZERO, SETTINGS, 8, tmp_path, "run")


def test_a_process_that_torchrun_did_not_start_is_refused(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(InputError, match="torchrun"):
        Zero(None, ZERO, SETTINGS, 8, tmp_path, "run")


def test_no_section_is_no_engine() -> None:
    assert ZeroSettings.of(None) is None


def test_placing_takes_along_what_a_dataclass_has_computed() -> None:
    batch = collate([sequence(0, 30, 6, 2)], PAD, SPECIAL)
    slots = batch.slots
    moved = placed(batch, torch.device("meta"))
    assert moved.padded.ids.is_meta and moved.slots.early.is_meta and moved.row.is_meta
    assert not slots.early.is_meta and not batch.padded.ids.is_meta


def started(study: Study, folder: Path) -> subprocess.Popen[bytes]:
    """The script as a rule starts it; it starts torchrun."""
    arguments = study.student_arguments(
        folder, "mech", deepspeed=DEEPSPEED, steps=12, checkpoint_every=2
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    script = ROOT / "workflow" / "scripts" / "train_student.py"
    return subprocess.Popen([sys.executable, str(script), *arguments], env=environment)


def test_a_killed_job_goes_on_and_leaves_no_process_behind(study: Study, tmp_path: Path) -> None:
    script = started(study, tmp_path)
    deadline = time.monotonic() + 600
    while not (tmp_path / "checkpoint.zero" / "state.json").exists():
        assert script.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    below = psutil.Process(script.pid).children(recursive=True)
    script.send_signal(signal.SIGKILL)
    assert script.wait(60) == -signal.SIGKILL
    _, alive = psutil.wait_procs(below, timeout=60)
    assert not alive
    assert not (tmp_path / "model.safetensors").exists()

    assert started(study, tmp_path).wait(900) == 0
    budget = read_json(tmp_path / "budget.json")
    assert budget["steps"] == 12
    assert budget["processes"] == 1
    (resumed,) = budget["resumed"]
    assert resumed["step"] >= 2
    assert resumed["kept"] == "all"
    curve = read_table(tmp_path / "curve.parquet")
    assert sorted(set(curve.step)) == list(range(12))
    assert not (tmp_path / "checkpoint.zero").exists()
    weights, _ = read_tensors(tmp_path / "model.safetensors")
    base, _ = read_tensors(study.folder / "base.safetensors")
    assert weights.keys() == base.keys()
    assert not any(torch.equal(weights[name], base[name]) for name in weights)
