"""The driver tells a person the place, the time left, and the one message that matters."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from mechdistill import artifacts, teller

PLAN = ["job count", "------- -----", "train        2", "score        2", "all    1", "total   5"]


def told(lines: list[str], seconds: dict[str, float] | None = None) -> str:
    out = io.StringIO()
    telling = teller.Teller(out, seconds or {})
    for line in PLAN:
        telling.snakemake_line(line)
    for line in lines:
        telling.job_line(line)
    return out.getvalue()


def test_jobs_are_numbered_of_those_planned() -> None:
    text = told(["train a | started", "train a | step 3/9 (33%), 2.0/s", "train b | started"])
    assert text.splitlines() == [
        "[1/4] train a | started",
        "train a | step 3/9 (33%), 2.0/s",
        "[2/4] train b | started",
    ]


def test_jobs_of_a_member_say_which_of_how_many_it_is() -> None:
    out = io.StringIO()
    telling = teller.Teller(out, {}, "member 2 of 4")
    telling.begin("small", 1)
    for line in PLAN:
        telling.snakemake_line(line)
    telling.job_line("train a | started")
    telling.job_line("train a | done in 3 s")
    assert out.getvalue().splitlines() == [
        "Study small (member 2 of 4) on 1 core: looking what there is to do",
        "[member 2 of 4, 1/4] train a | started",
        "train a | done in 3 s (1 of 4 jobs of member 2 of 4, 0 s so far)",
    ]


def test_second_plan_of_a_run_counts_anew() -> None:
    out = io.StringIO()
    telling = teller.Teller(out, {})
    for planned in (2, 1):
        for line in ("Job stats:", f"train {planned}", "all 1", f"total {planned + 1}"):
            telling.snakemake_line(line)
        telling.job_line("train a | started")
        telling.job_line("train a | done in 3 s")
    assert out.getvalue().splitlines()[2:] == [
        "[1/1] train a | started",
        "train a | done in 3 s (1 of 1 jobs, 0 s so far)",
    ]


def test_finished_job_tells_how_far_the_run_is() -> None:
    text = told(["train a | started", "train a | done in 3 s, at most 90 MiB"])
    assert text.splitlines()[-1] == (
        "train a | done in 3 s, at most 90 MiB (1 of 4 jobs, 0 s so far)"
    )


def test_time_left_follows_the_shares_of_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 30.0])
    monkeypatch.setattr(teller.time, "monotonic", lambda: next(now))
    # one training of 3 parts of 8 took 30 s: 50 s for the 5 parts left
    text = told(["train a | done in 30 s"], {"train": 3.0, "score": 1.0})
    assert text.endswith("(1 of 4 jobs, 30 s so far, about 50 s left)\n")


def test_rule_without_a_record_counts_as_an_average_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 30.0])
    monkeypatch.setattr(teller.time, "monotonic", lambda: next(now))
    text = told(["train a | done in 30 s"], {"train": 3.0})  # as long as each of 3 others
    assert text.endswith("(1 of 4 jobs, 30 s so far, about 1 min 30 s left)\n")


def test_passing_line_does_not_wrap_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    out = io.StringIO()
    out.isatty = lambda: True  # type: ignore[method-assign]
    telling = teller.Teller(out, {})
    for line in ("train a | step 3/9 (33%), 2.0/s, 3 s left", "train a | a long line that stays"):
        telling.job_line(line)
    assert out.getvalue() == (
        "\r\x1b[Ktrain a | step 3/9 (33%), 2.0\r\x1b[Ktrain a | a long line that stays\n"
    )


def test_time_by_stage_is_told_in_the_order_of_the_run(tmp_path: Path) -> None:
    for name, stage, started in (("a", "report", "02T10"), ("b", "data", "01T12")):
        artifacts.write_json(
            tmp_path / f"provenance/runs/tiny/{name}.json",
            {
                "outputs": [{"path": f"results/tiny/{stage}/x"}],
                "started": started,
                "wall_seconds": 7.0,
                "peak_memory_bytes": 2**20,
            },
        )
    assert teller.stage_times(tmp_path, "tiny") == (
        "Time of all jobs: data 7 s, report 7 s. At most 1 MiB in one job."
    )


def test_failed_jobs_message_comes_last() -> None:
    out = io.StringIO()
    telling = teller.Teller(out, {})
    for line in (
        "train a | started",
        "train b | started",
        "train a | FAILED: x.parquet is missing",
        "train a |   What to do: make it",
        "train b | done in 9 s",
    ):
        telling.job_line(line)
    telling.snakemake_line("Error in rule train: a page of it")
    telling.fail(1, Path("logs/s/snakemake.log"))
    lines = out.getvalue().splitlines()
    assert lines[-5:-2] == [
        "",
        "train a | FAILED: x.parquet is missing",
        "train a |   What to do: make it",
    ]
    assert "the same command goes on from here" in lines[-1]
    assert "a page of it" not in out.getvalue()


def test_snakemakes_own_failure_is_shown() -> None:
    out = io.StringIO()
    telling = teller.Teller(out, {})
    telling.snakemake_line("MissingInputException in rule train")
    telling.fail(1, Path("logs/s/snakemake.log"))
    assert "MissingInputException in rule train" in out.getvalue()


def test_full_disk_under_snakemake_is_one_message() -> None:
    out = io.StringIO()
    telling = teller.Teller(out, {})
    telling.snakemake_line("Traceback (most recent call last):")
    telling.snakemake_line("OSError: [Errno 28] No space left on device: '.snakemake/x'")
    telling.fail(1, Path("logs/s/snakemake.log"))
    assert "FAILED: the disk is full" in out.getvalue()
    assert "Traceback" not in out.getvalue()


def test_expected_times_are_means_of_the_records(tmp_path: Path) -> None:
    folder = tmp_path / "provenance/runs/tiny"
    for name, seconds in (("a", 2.0), ("b", 4.0)):
        artifacts.write_json(
            folder / f"train-{name}.json", {"rule": "train", "wall_seconds": seconds}
        )
    (folder / "train-c.json").write_text("{half")
    assert teller.rule_seconds(tmp_path, "tiny") == {"train": 3.0}
