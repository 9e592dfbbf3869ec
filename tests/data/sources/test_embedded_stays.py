"""Notes of an embedded study, written in MIMIC-IV's format and read back by its loader."""

import runpy
from pathlib import Path

import pytest

from mechdistill.data.examples import Example, write_examples
from mechdistill.data.labels import LabelSpace, write_label_space
from mechdistill.data.sources import mimic_iv
from mechdistill.data.sources.embedded_stays import stays_of, titles_of
from mechdistill.data.sources.mimic import mimic_collection, open_mimic_iv
from mechdistill.data.sources.mimic_iv_files import write_mimic_iv

SCRIPT = Path(__file__).parents[3] / "workflow/scripts/write_mimic_files.py"


def test_embedded_notes_come_back_by_the_loader(
    examples: list[Example],
    space: LabelSpace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = {name: tmp_path / f"{name}.csv.gz" for name in mimic_iv.TABLES}
    write_label_space(tmp_path / "space.json", space)
    write_examples(tmp_path / "examples.parquet", examples)
    arguments = ["--label-space", tmp_path / "space.json", "--params", "{}"]
    arguments += ["--examples", tmp_path / "examples.parquet", "--tables", *paths.values()]
    monkeypatch.setattr("sys.argv", ["write_mimic_files", *map(str, arguments)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    stays = list(stays_of(examples, space))
    with mimic_collection(open_mimic_iv(tmp_path, None), 1, tmp_path / "work") as found:
        read = list(found.documents)
    assert len(read) == len(examples)
    split_of = {}
    for example, stay, document in zip(examples, stays, read, strict=True):
        assert document.text == stay.text
        assert set(document.codes) == set(example.gold)
        assert split_of.setdefault(document.patient, example.split) == example.split
        said = document.text.removeprefix("Name: ___").split()
        assert said == example.prompt[: example.prompt.rfind("Candidates:")].split()
    assert len(split_of) < len(read)  # patients with two admissions
    titles = {label.code: label.title for label in found.labels.values()}
    assert titles == {code: space.label(code).description for code in titles}
    before = {name: path.read_bytes() for name, path in paths.items()}
    write_mimic_iv(paths, stays, titles_of(space), {})
    assert {name: path.read_bytes() for name, path in paths.items()} == before
