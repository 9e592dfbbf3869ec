"""The profiles are found from a clone without any installation step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .conftest import Checkout, environment

pytestmark = pytest.mark.workflow


def test_slurm_profile_plans_the_study_from_a_fresh_clone(
    fresh_clone: Checkout, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    snakemake = Path(sys.executable).with_name("snakemake")
    done = subprocess.run(
        [str(snakemake), "--profile", "slurm", "-n"],
        cwd=fresh_clone.root,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rule train_teacher:" in done.stdout + done.stderr
    assert re.search(r"resources: .*mem_mb=\d+.*runtime=\d+", done.stdout + done.stderr)
    assert "workflow specific profile profiles/default" in done.stderr


def test_every_rule_says_what_it_needs_of_a_cluster(fresh_clone: Checkout) -> None:
    rules = sorted((fresh_clone.root / "workflow" / "rules").glob("*.smk"))
    for path in rules:
        text = path.read_text(encoding="utf-8")
        jobs = text.count("    shell:\n")
        named = re.findall(
            r"^ *(use rule \w+ as|rule) (\w+)\b"
            r"(?:(?!^ *(?:use )?rule ).)*?needs\(\"(\w+)\"\)",
            text,
            re.M | re.S,
        )
        assert len(named) == text.count("**needs("), path.name
        assert sum(how == "rule" for how, *_ in named) == jobs, path.name
        assert all(rule == asked for _, rule, asked in named), path.name
        # a rule made from another one inherits its needs, but writes a log of its own
        assert text.count("    log:\n") == jobs + text.count("use rule "), path.name


def test_every_log_is_called_as_the_script_that_writes_it(fresh_clone: Checkout) -> None:
    rules = sorted((fresh_clone.root / "workflow" / "rules").glob("*.smk"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in rules)
    blocks = re.split(r"^ *(?=(?:use )?rule \w)", text, flags=re.M)[1:]
    jobs = [block for block in blocks if "    log:\n" in block]
    assert len(jobs) == text.count("    log:\n")
    for block in jobs:
        script = re.findall(r"^use rule (\w+) as|\"(\w+)\.py\b", block)[0]
        log = re.findall(r"log:\s*\"<logs>/(\w+)", block)[0]
        assert log in script, block.splitlines()[0]  # else the audit takes its records for foreign


def test_default_profile_compares_content_and_redoes_what_was_cut_off(
    fresh_clone: Checkout,
) -> None:
    text = (fresh_clone.root / "profiles" / "default" / "config.yaml").read_text(encoding="utf-8")
    profile = yaml.safe_load(text)
    assert profile["max-checksum-file-size"] == "1TB"
    assert profile["rerun-incomplete"] is True


def test_lint_has_no_complaint(fresh_clone: Checkout) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--lint"],
        cwd=fresh_clone.root,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
