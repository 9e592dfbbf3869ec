from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from mechdistill import dvc_stages
from mechdistill.dvc_stages import Stage, check, in_order, jobs_of_dry_run, stages_of
from mechdistill.errors import InputError
from mechdistill.provenance.fingerprint import SourceTree


def block(
    rule: str, inputs: str, outputs: str, params: str = "{}", also: str = "", script: str = "run"
) -> str:
    """What a dry run says about one job."""
    return (
        f"[Mon Jan  1 00:00:00 2024]\nrule {rule}:\n    output: {outputs}\n    jobid: 1\n"
        f"Shell command: python -m mechdistill.provenance.run --params {shlex.quote(params)}"
        f" --code 0a --inputs {inputs} --outputs {outputs} --log logs/x.log --threads 1"
        f" --also {also} -- workflow/scripts/{script}.py --out {outputs}\n"
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    files = {
        "workflow/scripts/run.py": "import package.part\n",
        "src/package/__init__.py": "",
        "src/package/part.py": "from package.heads import coarse\n",
        "src/package/heads/__init__.py": "",
        "src/package/heads/coarse.py": "",
        "src/package/other.py": "",
        "params.yaml": "study: embedded\nseed: 7\na: {b: 1, c: 2}\n",
        "studies/tiny.yaml": "study: tiny\na: {b: 3}\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


SAID = (
    "Building DAG of jobs...\nJob stats:\njob  count\n"
    + block("train", "data.parquet", "m1/a.json m1/b.json", '{"a.b":1}', "src/package/other.py")
    + block("train", "data.parquet", "m2/a.json m2/b.json", '{"a.b":1,"a.c":2}')
    + block("make_data", "", "data.parquet", '{"seed":7}')
    + "rule all:\n    input: m1/a.json\nShell command: None\n"
    + "Reasons:\n    forced:\n        train, make_data\n"
)


def test_the_jobs_of_a_rule_become_one_stage(repository: Path) -> None:
    stages = stages_of(jobs_of_dry_run(SAID), SourceTree(repository), repository)
    assert set(stages) == {"train", "make_data"}
    assert stages["train"].inputs == {"data.parquet"}
    assert stages["train"].outputs == {"m1/a.json", "m1/b.json", "m2/a.json", "m2/b.json"}
    assert stages["train"].parameters == {"a.b", "a.c"}
    assert stages["make_data"].inputs == set()


def test_a_stage_depends_on_the_code_that_its_scripts_import(repository: Path) -> None:
    stages = stages_of(jobs_of_dry_run(SAID), SourceTree(repository), repository)
    top = {"src/package/__init__.py", "src/package/part.py"}
    shared = {"workflow/scripts/run.py", "src/package/heads", *top}
    assert stages["make_data"].code == shared
    assert stages["train"].code == shared | {"src/package/other.py"}


@pytest.mark.parametrize(
    ("study", "config", "params"),
    [
        (None, "", ["a.b", "a.c"]),
        ("embedded", "", ["a.b", "a.c"]),
        ("tiny", " --config study=tiny", ["a.b", "a.c", {"studies/tiny.yaml": ["a.b"]}]),
    ],
)
def test_the_file_says_what_each_stage_reads_and_makes(
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    study: str | None,
    config: str,
    params: list[object],
) -> None:
    monkeypatch.setattr(dvc_stages, "dry_run", lambda root, name: SAID)
    stages = yaml.safe_load(dvc_stages.stages_text(repository, study))["stages"]
    assert list(stages) == ["make_data", "train"]
    assert stages["train"]["cmd"] == f"snakemake --cores 2 --until train{config}"
    assert stages["train"]["params"] == params
    assert stages["train"]["outs"][0] == {"m1/a.json": {"persist": True}}
    assert "data.parquet" in stages["train"]["deps"]


def test_dvc_keeps_no_copy_of_restricted_results(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = SAID.replace(" -- ", " --restricted -- ", 1)  # one restricted job is enough
    monkeypatch.setattr(dvc_stages, "dry_run", lambda root, name: said)
    stages = yaml.safe_load(dvc_stages.stages_text(repository, None))["stages"]
    options = [
        value for stage in stages.values() for out in stage["outs"] for value in out.values()
    ]
    assert options == [{"persist": True, "cache": False}] * 5


def test_metrics_and_figures_are_named_where_the_rules_make_them(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = "results/x/report/metrics.json results/x/report/figure1.png results/x/metrics.json"
    said = SAID + block("show", "data.parquet", f"{outputs} results/x/report/figure1.pdf")
    monkeypatch.setattr(dvc_stages, "dry_run", lambda root, name: said)
    document = yaml.safe_load(dvc_stages.stages_text(repository, None))
    assert document["metrics"] == ["results/x/report/metrics.json"]
    assert document["plots"] == ["results/x/report/figure1.png"]
    monkeypatch.setattr(dvc_stages, "dry_run", lambda root, name: SAID)
    assert set(yaml.safe_load(dvc_stages.stages_text(repository, None))) == {"stages"}


def test_rules_come_after_those_whose_files_they_read() -> None:
    stages = {
        "a": Stage(inputs={"c.out"}, outputs={"a.out"}),
        "b": Stage(inputs={"a.out", "c.out"}, outputs={"b.out"}),
        "c": Stage(inputs={"given by hand"}, outputs={"c.out"}),
        "d": Stage(outputs={"d.out"}),
    }
    assert in_order(stages) == ["c", "d", "a", "b"]


def test_rules_that_need_each_other_are_named() -> None:
    stages = {
        "a": Stage(inputs={"b.out"}, outputs={"a.out"}),
        "b": Stage(inputs={"a.out"}, outputs={"b.out"}),
    }
    with pytest.raises(InputError, match=r"rules need each other's files: .* -> "):
        in_order(stages)


def test_a_rule_without_the_run_wrapper_is_named() -> None:
    said = "rule bare:\n    output: x\nShell command: touch x\n"
    with pytest.raises(InputError, match="rule bare does not start its script"):
        jobs_of_dry_run(said)


def test_a_file_of_other_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="make stages"):
        check(tmp_path, "new")
    (tmp_path / "dvc.yaml").write_text("old")
    with pytest.raises(InputError, match="make stages"):
        check(tmp_path, "new")
    check(tmp_path, "old")


def test_parameters_are_looked_for_in_every_file_of_the_study(tmp_path: Path) -> None:
    (tmp_path / "studies").mkdir()
    (tmp_path / "params.yaml").write_text("study: base\nseed: 1\ndistil: {seeds: [0]}\n")
    (tmp_path / "studies" / "low.yaml").write_text("distil: {seeds: [1]}\n")
    (tmp_path / "studies" / "top.yaml").write_text("extends: [low]\nseed: 2\n")
    layers = dvc_stages._layers("top", tmp_path)
    assert dvc_stages._parameter_files({"seed", "distil.seeds", "data"}, layers) == [
        "distil.seeds",
        "seed",
        {"studies/low.yaml": ["distil.seeds"]},
        {"studies/top.yaml": ["seed"]},
    ]


def test_parameters_of_a_joined_study_are_those_of_its_members() -> None:
    root = Path(__file__).parents[1]
    layers = dvc_stages._layers("embedded-full", root)
    assert dvc_stages._parameter_files({"members", "distil.methods", "distil.student"}, layers) == [
        "distil.methods",
        "distil.student",
        {"studies/embedded-full-icd-small.yaml": ["distil.methods"]},
        {"studies/embedded-full-icd-large.yaml": ["distil.student"]},
        {"studies/embedded-full-foldoc-large.yaml": ["distil.student"]},
        {"studies/embedded-full.yaml": ["members"]},
    ]
