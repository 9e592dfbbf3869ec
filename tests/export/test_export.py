"""The export of a small invented study: what is in it, what is not, and that it can be audited."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mechdistill.audit.again import run_again
from mechdistill.audit.check import audit, audit_crate
from mechdistill.audit.crate import DESCRIPTION, crate_folder, study_in
from mechdistill.audit.record import read_records
from mechdistill.digests import sha256_of
from mechdistill.errors import InputError
from mechdistill.export.crate import export_study
from tests.crate_validator import complaints
from tests.made_study import NAME, NOTES, PAGE, SECRET, TABLE, make_checkout, make_study


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_study(tmp_path / "here")


@pytest.fixture
def restricted(tmp_path: Path) -> Path:
    return make_study(tmp_path / "restricted", restricted=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout elsewhere without results."""
    return make_checkout(tmp_path / "clone")


def graph(crate: Path) -> dict[str, dict[str, Any]]:
    content = json.loads((crate / DESCRIPTION).read_text(encoding="utf-8"))
    nodes = content["@graph"]
    assert len({node["@id"] for node in nodes}) == len(nodes)
    return {node["@id"]: node for node in nodes}


def files_of(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}


def referred(node: Any) -> set[str]:
    """Every `@id` that a node names."""
    if isinstance(node, list):
        return set().union(*map(referred, node))
    if not isinstance(node, dict):
        return set()
    if set(node) == {"@id"}:
        return {node["@id"]}
    return set().union(*map(referred, node.values()))


def test_the_invented_study_is_clean(root: Path) -> None:
    assert audit(root, NAME).clean, str(audit(root, NAME))


def test_a_crate_holds_results_records_notes_parameters_and_code(root, tmp_path):
    done = export_study(root, NAME, tmp_path / "out")
    held, here = files_of(tmp_path / "out"), files_of(root)
    made = {DESCRIPTION, "provenance/audit.json"}
    assert set(held) - made == set(here)
    assert all(held[path] == here[path] for path in set(held) - made)
    assert (done.files, done.kept_back, done.findings) == (4, 0, 0)


def test_each_job_is_an_action_with_script_files_values_and_times(root, tmp_path):
    export_study(root, NAME, tmp_path / "out")
    nodes = graph(tmp_path / "out")
    job = nodes["#job/write_report"]
    assert job["instrument"] == {"@id": "workflow/scripts/write_report.py"}
    assert {"@id": NOTES} in job["object"] and {"@id": TABLE} in job["result"]
    assert job["endTime"] == "2026-01-01T00:00:01+00:00"
    assert nodes["#value/significance.alpha"]["value"] == "0.05"
    assert {"@id": "#value/significance.alpha"} in job["object"]
    assert nodes["#job/write_report/wall_seconds"]["value"] == 1.5
    assert nodes["#software/snakemake/9.27.1"]["softwareVersion"] == "9.27.1"
    assert nodes[TABLE]["sha256"] == sha256_of(root / TABLE)


def test_every_reference_is_to_a_node_or_an_address(root, tmp_path):
    export_study(root, NAME, tmp_path / "out")
    nodes = graph(tmp_path / "out")
    missing = {name for node in nodes.values() for name in referred(node)} - set(nodes)
    assert all(name.startswith("https://") for name in missing)


def test_every_file_named_is_there_and_every_file_there_is_named(root, tmp_path):
    export_study(root, NAME, tmp_path / "out")
    nodes = graph(tmp_path / "out")
    held = set(files_of(tmp_path / "out"))
    named = {name for name, node in nodes.items() if "File" in node["@type"]}
    whole = tuple(name for name, node in nodes.items() if node["@type"] == "Dataset")
    assert named <= held
    rest = held - named - {DESCRIPTION}
    assert all(path.startswith(tuple(name for name in whole if name != "./")) for path in rest)


def test_the_validator_passes_it_and_fails_one_without_tools(root, tmp_path):
    crate = tmp_path / "out"
    export_study(root, NAME, crate)
    assert complaints(crate, tmp_path / "good.json") == []
    content = json.loads((crate / DESCRIPTION).read_text(encoding="utf-8"))
    for node in content["@graph"]:
        if node["@id"] == "#job/make_notes":
            del node["instrument"]
    (crate / DESCRIPTION).write_text(json.dumps(content), encoding="utf-8")
    said = complaints(crate, tmp_path / "bad.json")
    assert any("MUST have an instrument" in message for message in said)


def test_servers_that_a_job_asked_are_instruments_of_its_action(root, tmp_path):
    path = root / f"provenance/runs/{NAME}/make_notes.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    told = {"base_url": "http://localhost:8000/v1", "model": "teacher", "takes_ids": True}
    one = {**told, "version": "0.9", "root": None, "agreement": 0.975, "answers": 12}
    record["services"] = [one, {**told, "version": None, "answers": 3}]
    path.write_text(json.dumps(record), encoding="utf-8")
    export_study(root, NAME, tmp_path / "out")
    nodes = graph(tmp_path / "out")
    script, *asked = (link["@id"] for link in nodes["#job/make_notes"]["instrument"])
    assert script == "workflow/scripts/make_notes.py"
    assert [nodes[name]["softwareVersion"] for name in asked] == ["0.9", "not told"]
    assert {nodes[name]["@type"] for name in asked} == {"SoftwareApplication"}
    facts = [nodes[link["@id"]] for link in nodes[asked[0]]["additionalProperty"]]
    assert {fact["name"]: fact["value"] for fact in facts} == {
        **{"agreement": "0.975", "answers": "12", "base_url": "http://localhost:8000/v1"},
        **{"model": "teacher", "takes_ids": "true", "version": "0.9"},
    }
    assert nodes["#job/write_report"]["instrument"] == {"@id": "workflow/scripts/write_report.py"}
    missing = {name for node in nodes.values() for name in referred(node)} - set(nodes)
    assert all(name.startswith("https://") for name in missing)
    assert complaints(tmp_path / "out", tmp_path / "told.json") == []


def test_equal_results_give_equal_bytes(root, tmp_path):
    for name in ("one", "other"):
        export_study(root, NAME, tmp_path / name)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "other")


def test_results_with_findings_are_refused_unless_asked_for(root, tmp_path):
    (root / TABLE).write_text("method,f1\nmech,0.9\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"not clean .*TAMPERED results/tiny/report/table1"
    ) as told:
        export_study(root, NAME, tmp_path / "out")
    assert "--with-findings" in told.value.remedy
    assert not (tmp_path / "out").exists()
    assert export_study(root, NAME, tmp_path / "out", with_findings=True).findings == 1
    said = json.loads((tmp_path / "out/provenance/audit.json").read_text(encoding="utf-8"))
    assert [finding["code"] for finding in said["findings"]] == ["TAMPERED"]
    assert "1 findings" in graph(tmp_path / "out")["./"]["description"]


def test_results_without_any_record_are_refused_even_then(root, tmp_path):
    shutil.rmtree(root / "provenance/runs")
    with pytest.raises(InputError, match="no record of a job"):
        export_study(root, NAME, tmp_path / "out", with_findings=True)


def test_a_study_without_results_is_refused(root, tmp_path):
    with pytest.raises(InputError, match="there are no results of the study embedded"):
        export_study(root, "embedded", tmp_path / "out")


def test_nothing_is_overwritten_and_nothing_goes_among_the_results(root, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="is there already"):
        export_study(root, NAME, tmp_path / "out")
    with pytest.raises(InputError, match="among the results"):
        export_study(root, NAME, root / "results/out")


def test_a_full_disk_is_told_and_leaves_nothing(root, tmp_path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mechdistill.export.crate.shutil.copyfile", full)
    (tmp_path / "crates").mkdir()
    with pytest.raises(InputError, match="No space left on device"):
        export_study(root, NAME, tmp_path / "crates/out")
    assert list((tmp_path / "crates").iterdir()) == []


def test_a_crate_is_audited_in_another_clone(root, clone, tmp_path):
    export_study(root, NAME, tmp_path / "out")
    shutil.rmtree(root)
    assert study_in(tmp_path / "out") == NAME
    assert audit_crate(tmp_path / "out", clone).clean
    (tmp_path / "out" / PAGE).write_text("<p>0.6</p>", encoding="utf-8")
    (tmp_path / "out" / NOTES).unlink()
    found = audit_crate(tmp_path / "out", clone, numbers=True).findings
    assert {(finding.code, finding.where) for finding in found} == {
        ("TAMPERED", PAGE),
        ("MISSING", NOTES),
    }


def test_a_crate_of_other_code_or_parameters_is_told(root, clone, tmp_path):
    export_study(root, NAME, tmp_path / "out")
    (clone / "workflow/scripts/make_notes.py").write_text("print('other')\n", encoding="utf-8")
    params = tmp_path / "out/params.yaml"
    text = params.read_text(encoding="utf-8").replace("alpha: 0.05", "alpha: 0.5")
    params.write_text(text, encoding="utf-8")
    found = {finding.code for finding in audit_crate(tmp_path / "out", clone).findings}
    assert found == {"STALE-CODE", "STALE-PARAMETER"}


def test_a_crate_of_parameters_unknown_here_names_its_commit(root, clone, tmp_path):
    export_study(root, NAME, tmp_path / "out")
    with (tmp_path / "out/params.yaml").open("a", encoding="utf-8") as file:
        file.write("of_tomorrow: 1\n")
    with pytest.raises(InputError, match="of_tomorrow") as told:
        audit_crate(tmp_path / "out", clone)
    assert "c0ffee" in told.value.remedy


def test_a_folder_is_a_crate_unless_a_study_is_called_so(root, tmp_path):
    export_study(root, NAME, root / "out")
    assert crate_folder(root, "out") == (root / "out").resolve()
    assert crate_folder(root, NAME) is None
    export_study(root, NAME, root / NAME)
    assert crate_folder(root, NAME) is None
    assert crate_folder(root, f"./{NAME}/") is not None


@pytest.mark.parametrize(
    "command",
    [
        ["/tmp/evil.py", "--out", PAGE],
        ["workflow/scripts/../../evil.py"],
        ["workflow/scripts/write_report.py", "--out", "/etc/passwd"],
        ["workflow/scripts/write_report.py", "--out", f"{PAGE}/../../../../x"],
        ["workflow/scripts/write_report.py", "--out=/etc/passwd"],
    ],
)
def test_no_command_of_a_crate_leads_out_of_it(root, clone, tmp_path, command):
    record = read_records(root, NAME)[0][1].model_copy(update={"command": tuple(command)})
    with pytest.raises(InputError, match="which is no file of the study"):
        run_again(record, root, tmp_path / "place", {}, clone)


def test_of_restricted_data_only_the_report_leaves(restricted, clone, tmp_path):
    shutil.copy(restricted / f"studies/{NAME}.yaml", clone / f"studies/{NAME}.yaml")
    done = export_study(restricted, NAME, tmp_path / "out")
    assert (done.files, done.kept_back) == (3, 1)
    for path in (path for path in (tmp_path / "out").rglob("*") if path.is_file()):
        assert SECRET.encode() not in path.read_bytes(), path
    nodes = graph(tmp_path / "out")
    assert NOTES not in nodes
    assert nodes[f"#absent/{NOTES}"]["sha256"] == sha256_of(restricted / NOTES)
    assert "restricted" in nodes["./"]["description"]
    assert complaints(tmp_path / "out", tmp_path / "report.json") == []
    assert audit_crate(tmp_path / "out", clone).clean
    with pytest.raises(InputError, match="no rows of single examples"):
        audit_crate(tmp_path / "out", clone, numbers=True)
    (tmp_path / "out" / PAGE).unlink()
    assert [f.code for f in audit_crate(tmp_path / "out", clone).findings] == ["MISSING"]
