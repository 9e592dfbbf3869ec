"""A finished study of two invented jobs in a checkout of its own, whose audit is clean."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import yaml

from mechdistill.digests import sha256_of
from mechdistill.provenance.fingerprint import SourceTree
from mechdistill.provenance.metadata import VERSIONED, note_path
from mechdistill.study import load_study

REPOSITORY = Path(__file__).resolve().parents[1]
NAME = "tiny"
NOTES = f"results/{NAME}/data/notes.json"
TABLE, PAGE, FINDINGS = (
    f"results/{NAME}/report/{name}" for name in ("table1.csv", "report.html", "findings.txt")
)
SECRET = "Mrs Marrow has a cough"
"""Text of a note; only `NOTES` holds it."""
CONTENTS = {NOTES: SECRET, TABLE: "method,f1\nmech,0.5\n", PAGE: "<p>0.5</p>", FINDINGS: "0.5\n"}


def make_study(root: Path, *, restricted: bool = False) -> Path:
    """Code, parameters, results, records and notes of the study `tiny`; gives `root` back."""
    make_checkout(root, restricted=restricted)
    for path, content in CONTENTS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    write_job(root, "make_notes", [], [NOTES], ["seed"])
    write_job(
        root, "write_report", [NOTES], [TABLE, PAGE, FINDINGS], ["report", "significance.alpha"]
    )
    return root


def make_checkout(root: Path, *, restricted: bool = False) -> Path:
    """Code and parameters alone."""
    for folder in ("envs", "studies", "src/mechdistill", "workflow/scripts", "provenance"):
        (root / folder).mkdir(parents=True)
    for rule in ("make_notes", "write_report"):
        (root / f"workflow/scripts/{rule}.py").write_text(f'print("{rule}")\n', encoding="utf-8")
    (root / "src/mechdistill/__init__.py").touch()
    for file in (REPOSITORY / "envs").glob("*.txt"):
        shutil.copy(file, root / "envs")
    for name in ("params.yaml", "CITATION.cff", "LICENSE", "README.md", "Makefile"):
        shutil.copy(REPOSITORY / name, root)
    for name in ("Snakefile", "pyproject.toml"):
        (root / name).write_text("# as short as can be\n", encoding="utf-8")
    overlay: dict[str, Any] = {}
    if restricted:
        text = (REPOSITORY / "studies/paper-mimic-iv.yaml").read_text(encoding="utf-8")
        overlay = yaml.safe_load(text)
    overlay["study"] = NAME
    (root / f"studies/{NAME}.yaml").write_text(yaml.safe_dump(overlay), encoding="utf-8")
    return root


def write_job(
    root: Path, rule: str, inputs: list[str], outputs: list[str], keys: list[str]
) -> None:
    """The record of a job, and Snakemake's notes on what it wrote."""
    study = load_study({"study": NAME}, root)
    script = f"workflow/scripts/{rule}.py"
    code = SourceTree(root).fingerprint(script)
    command = [script, *(word for path in outputs for word in ("--out", path))]
    wrapper = ["python", "-m", "mechdistill.provenance.run", "--params", study.subset(keys)]
    wrapper += ["--code", code.digest, "--inputs", *inputs, "--outputs", *outputs]
    wrapper += ["--log", f"logs/{NAME}/{rule}.log", "--", *command]
    record = {
        "study": NAME,
        "rule": rule,
        "job": rule,
        "command": command,
        "parameters": json.loads(study.subset(keys)),
        "code": {"fingerprint": code.digest, "files": code.files, "not_in_fingerprint": []},
        "inputs": described(root, inputs),
        "outputs": described(root, outputs),
        "git": {"commit": "c0ffee", "dirty": False},
        "environment": {
            "python": "3.11.9",
            "platform": "Linux",
            "processor": "x86_64",
            "packages": {"snakemake": "9.27.1"},
        },
        "threads": 1,
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:00:01+00:00",
        "wall_seconds": 1.5,
        "peak_memory_bytes": 1000,
    }
    file = root / f"provenance/runs/{NAME}/{rule}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record), encoding="utf-8")
    read = {path: f"sha256:{sha256_of(root / path)}" for path in inputs}
    note = json.dumps({"shellcmd": shlex.join(wrapper), "input_checksums": read})
    for path in outputs:
        place = note_path(root / VERSIONED, Path(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(note, encoding="utf-8")


def described(root: Path, paths: list[str]) -> list[dict[str, object]]:
    files = [root / path for path in paths]
    return [
        {"path": path, "sha256": sha256_of(file), "bytes": file.stat().st_size}
        for path, file in zip(paths, files, strict=True)
    ]
