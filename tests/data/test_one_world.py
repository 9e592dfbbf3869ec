"""Files of two worlds are never read together: one message names file, row and both values."""

from __future__ import annotations

import ast
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mechdistill.artifacts import read_json, read_table, write_json, write_table
from mechdistill.data.examples import Example, write_examples
from mechdistill.data.labels import LabelSpace, build_label_space, write_label_space
from mechdistill.data.one_world import check_one_world, check_same_notes
from mechdistill.data.tokenizer import build_tokenizer, save_tokenizer
from mechdistill.data.twins import twins_of, write_twins
from mechdistill.errors import InputError
from mechdistill.traces.parse import Trace
from mechdistill.traces.reference import reference_traces
from mechdistill.traces.store import read_traces, write_traces

LAYERS, HEADS = 2, 3
SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"
READERS = {
    *("load_model", "load_tokenizer", "read_label_space", "read_examples", "read_traces"),
    *("read_samples", "read_twins", "read_pools", "train_student"),
}
MAKERS = {  # what they read with the label space they have made from it, or check word by word
    *("ask_documents", "make_examples", "train_teacher", "train_base_student", "convert_teacher"),
}
Files = dict[str, Path]


@pytest.fixture(scope="module")
def notes(examples: list[Example]) -> list[Example]:
    return [example for example in examples if example.split == "patching"]


@pytest.fixture(scope="module")
def traces(notes: list[Example], tokenizer: Any, space: LabelSpace) -> list[Trace]:
    return reference_traces(notes, tokenizer, space, 8)


@pytest.fixture
def files(
    tmp_path: Path, notes: list[Example], traces: list[Trace], space: LabelSpace, tokenizer: Any
) -> Files:
    names = ("config", "tokenizer", "label_space", "pools", "examples", "traces", "twins")
    paths = {name: tmp_path / f"{name}.json" for name in (*names, "rankings")}
    config = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    write_json(paths["config"], config | {"vocab_size": len(tokenizer)})
    save_tokenizer(paths["tokenizer"], tokenizer)
    write_label_space(paths["label_space"], space)
    write_examples(paths["examples"], notes)
    write_traces(paths["traces"], traces)
    write_twins(paths["twins"], [t for note in notes for t in twins_of(note, space, tokenizer, 7)])
    ranked = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    write_table(paths["rankings"], pd.DataFrame(ranked, columns=["layer", "head"]))
    head = {"layer": 1, "head": 2, "weight": 1.0}
    write_json(paths["pools"], {f"phase{phase}": {"heads": [head]} for phase in (1, 2)})
    return paths


def refused(files: Files, **others: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        check_one_world(**files, **others)
    return caught.value


def test_files_of_one_world_pass_also_a_few_of_them(files: Files) -> None:
    check_one_world(**files)
    check_one_world(**files, split="patching")
    for left_out in files:
        check_one_world(**{name: path for name, path in files.items() if name != left_out})


def test_another_tokenizer_does_not_fit_the_model(files: Files, tokenizer: Any) -> None:
    other = build_tokenizer(build_label_space(8, 3, 2, 2, 0))
    assert len(other) < len(tokenizer)
    save_tokenizer(files["tokenizer"], other)
    error = refused(files)
    assert error.what == (
        f"{files['tokenizer']} has {len(other)} tokens, "
        f"but the model of {files['config']} reads {len(tokenizer)}"
    )
    assert f"rm {files['tokenizer']} && snakemake --cores 2" in error.remedy


def test_checkpoint_may_have_room_for_more_tokens_but_not_for_fewer(
    files: Files, pieces: Any
) -> None:
    save_tokenizer(files["tokenizer"], pieces)
    few = {name: files[name] for name in ("config", "tokenizer")}
    shape = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    write_json(files["config"], shape | {"vocab_size": len(pieces) + 20})
    check_one_world(**few)
    write_json(files["config"], shape | {"vocab_size": len(pieces) - 1})
    assert f"has {len(pieces)} tokens" in refused(few).what


def test_file_that_is_no_configuration_is_named(files: Files) -> None:
    write_json(files["config"], {"num_hidden_layers": LAYERS})
    assert "config.json is no configuration of a model: it has no number vocab_size" in str(
        refused(files)
    )


@pytest.mark.parametrize("column", ["gold", "near", "candidates", "regions"])
def test_code_outside_the_label_space_is_named_with_its_note(
    files: Files, notes: list[Example], column: str
) -> None:
    changed = replace(notes[3], **{column: ("Z99.1", *getattr(notes[3], column)[1:])})
    write_examples(files["examples"], [*notes[:3], changed, *notes[4:]])
    kind = "8 regions" if column == "regions" else "32 labels"
    assert refused(files).what == (
        f"{files['examples']}, example {changed.example}: Z99.1 is none of the {kind} "
        f"of {files['label_space']}"
    )


def test_code_that_a_trace_names_outside_the_label_space(files: Files, traces: list[Trace]) -> None:
    mention = replace(traces[1].mentions[0], code="Z99")
    changed = replace(traces[1], mentions=(mention, *traces[1].mentions[1:]))
    write_traces(files["traces"], [traces[0], changed])
    where = f"{files['traces']}, example {changed.example}: Z99 is none of the"
    assert refused(files).what.startswith(where)


def test_traces_of_other_notes_of_the_same_names(files: Files, traces: list[Trace]) -> None:
    one, two = traces[:2]
    swapped = [replace(two, example=one.example), replace(one, example=two.example)]
    write_traces(files["traces"], swapped)
    error = refused({name: files[name] for name in ("examples", "traces", "tokenizer")})
    assert error.what.startswith(f"{files['traces']}, example {one.example}: token ")
    assert f"in {files['examples']} with {files['tokenizer']}" in error.what


def test_trace_of_a_note_that_is_not_there(files: Files, notes: list[Example]) -> None:
    write_examples(files["examples"], notes[1:])
    name = notes[0].example
    for found in ("traces", "twins"):
        few = {key: files[key] for key in ("examples", "tokenizer", found)}
        assert f"{name}: {files['examples']} has no such example" in refused(few).what


def test_twins_of_other_notes_of_the_same_names(files: Files, notes: list[Example]) -> None:
    names = [note.example for note in notes]
    turned = [replace(note, example=name) for note, name in zip(notes, [*names[1:], names[0]])]
    write_examples(files["examples"], turned)
    error = refused({name: files[name] for name in ("examples", "twins")})
    assert error.what.startswith(f"{files['twins']}, twin K0 of {names[0]}: it reads ")
    assert "where nothing was changed" in error.what


def test_pool_with_a_head_that_the_model_lacks(files: Files) -> None:
    content = read_json(files["pools"])
    content["phase2"]["heads"].append({"layer": 0, "head": HEADS, "weight": 0.5})
    write_json(files["pools"], content)
    assert refused(files).what == (
        f"{files['pools']}, phase2.heads[1]: head 3 of layer 0, but the model of "
        f"{files['config']} has layers 0 to 1 with heads 0 to 2"
    )


def test_rankings_of_a_larger_and_of_a_smaller_model(files: Files) -> None:
    frame = read_table(files["rankings"])
    larger = pd.concat([frame, pd.DataFrame({"layer": [LAYERS], "head": [0]})])
    write_table(files["rankings"], larger)
    assert f"{files['rankings']}, row 6: head 0 of layer 2" in refused(files).what
    write_table(files["rankings"], frame[frame["layer"] == 0])
    assert refused(files).what == (
        f"{files['rankings']} ranks the heads of 1 layers of 3 heads, "
        f"but the model of {files['config']} has 2 of 3"
    )


def test_only_the_split_that_is_used_must_fit(files: Files, notes: list[Example]) -> None:
    foreign = replace(notes[0], split="test", example="test-00000", gold=("Z99.1",))
    write_examples(files["examples"], [*notes, foreign])
    check_one_world(**files, split="patching")
    assert "test-00000: Z99.1" in refused(files).what


def calls(script: Path) -> set[str]:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    names = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {name.id for name in names if isinstance(name, ast.Name)}


def test_every_script_that_reads_such_files_together_compares_them() -> None:
    called = {script.stem: calls(script) for script in SCRIPTS.glob("*.py")}
    together = {name for name, found in called.items() if len(found & READERS) > 1}
    comparing = {name for name, found in called.items() if "check_arguments" in found}
    assert together - comparing <= MAKERS
    assert len(comparing) > 20


def test_notes_of_two_runs_are_the_same_or_refused(tmp_path: Path) -> None:
    for name, text in (("a", "notes"), ("b", "notes"), ("c", "others")):
        (tmp_path / name).write_text(text)
    check_same_notes([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(InputError, match=r"c holds other notes than .*a, though both are of one"):
        check_same_notes([tmp_path / name for name in "abc"])


@pytest.mark.parametrize(
    ("script", "output", "wrong"),
    [
        ("generate_teacher_traces", "traces", "tokenizer"),
        ("check_corruptions", "manipulation", "twins"),
        ("patch_margin", "margin", "rankings"),
        ("patch_generated", "generated", "label_space"),
    ],
)
def test_scripts_refuse_before_they_load_the_model(
    files: Files,
    notes: list[Example],
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    output: str,
    wrong: str,
) -> None:
    other = build_label_space(8, 3, 2, 2, 0)
    if wrong == "tokenizer":
        save_tokenizer(files["tokenizer"], build_tokenizer(other))
    elif wrong == "label_space":
        write_label_space(files["label_space"], other)
    elif wrong == "twins":
        write_examples(files["examples"], notes[1:])
        write_traces(files["traces"], read_traces(files["traces"])[1:])
    else:
        write_table(files["rankings"], pd.DataFrame({"layer": [LAYERS], "head": [0]}))
    declared = (SCRIPTS / f"{script}.py").read_text(encoding="utf-8")
    arguments = [f"--{output}", "made.parquet", "--params", "{}", "--model", "missing.safetensors"]
    for name, path in files.items():
        option = name.replace("_", "-")
        if name != output and f'"{option}"' in declared:
            arguments += [f"--{option}", str(path)]
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    with pytest.raises(InputError) as caught:
        runpy.run_path(str(SCRIPTS / f"{script}.py"), run_name="__main__")
    assert str(files[wrong]) in caught.value.what
