"""The registry: declarations are read without torch, a new method is one new file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from mechdistill.distil import methods
from mechdistill.distil.methods import (
    declared_needs,
    declared_parameters,
    declared_pools,
    declared_settings,
    load_method,
    method_names,
    tuned_method,
)
from mechdistill.errors import InputError
from mechdistill.traces.parse import RefinePosition, Trace
from tests.distil.conftest import METHOD_SETTINGS as SETTINGS


def trace(status: str = "ok") -> Trace:
    return Trace(
        example="training-0",
        split="training",
        tokens=tuple(range(1, 21)),
        prompt_length=10,
        text="",
        status=status,
        answer=(),
        early=(9, 10, 11),
        late_start=13,
        reasoning_end=18,
        mentions=(),
        events=(),
        refine=(
            RefinePosition(14, 5, 6, 0, shortlist=(), near_miss=(12,)),
            RefinePosition(16, 5, 6, 0, shortlist=(13,), near_miss=(12,)),
        ),
    )


def test_the_methods_of_the_paper_s_skeleton_are_there() -> None:
    assert set(method_names()) >= {"vanilla", "vanilla_positions", "mech", "p1_only", "p2_only"}


def test_declarations_are_read_without_torch() -> None:
    code = (
        "import sys; from mechdistill.distil.methods import declared_parameters, method_names;"
        "[declared_parameters(name) for name in method_names()]; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", method_names())
def test_a_method_reads_exactly_the_parameters_that_it_declares(name: str) -> None:
    class Recorded(dict):
        read: set[str]

        def __getitem__(self, key: str) -> float:
            self.read.add(key)
            return super().__getitem__(key)

    settings = Recorded(SETTINGS)
    settings.read = set()
    method = load_method(name)
    method(settings)
    assert settings.read == set(method.parameters) == set(declared_parameters(name))


@pytest.mark.parametrize("name", method_names())
def test_a_method_s_file_holds_nothing_of_another_method(name: str) -> None:
    tree = ast.parse(methods.method_file(name).read_text())
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [module for module in imported if str(module).startswith(methods.__name__)]


def test_a_new_file_is_a_new_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain.py").write_text(
        "from mechdistill.distil.method import Method\n"
        "class Plain(Method):\n"
        '    name = "plain"\n'
        '    parameters = ("distil.lambda_kl",)\n'
    )
    monkeypatch.setattr(methods, "FOLDER", tmp_path)
    monkeypatch.setattr(methods, "__path__", [str(tmp_path)])
    assert method_names() == ("plain",)
    assert declared_parameters("plain") == ("distil.lambda_kl",)
    assert load_method("plain")(SETTINGS).lambda_kl == 0.5


@pytest.mark.parametrize("keys", ["()", "('distil.lambda_p1',)"])
def test_a_method_that_forgets_what_all_read_is_told_before_any_work(
    tmp_path, monkeypatch, keys: str
) -> None:
    (tmp_path / "odd.py").write_text(f"class Odd:\n    name = 'odd'\n    parameters = {keys}\n")
    monkeypatch.setattr(methods, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=r"odd\.py: parameters lacks 'distil.lambda_kl'"):
        declared_parameters("odd")


def test_random_heads_are_declared_without_running_the_file() -> None:
    assert declared_pools("random_pool") == "random"
    assert {declared_pools(name) for name in method_names() if name != "random_pool"} == {"found"}
    for name in method_names():
        assert load_method(name).pools == declared_pools(name)


def test_another_kind_of_heads_is_refused(tmp_path, monkeypatch) -> None:
    (tmp_path / "odd.py").write_text(
        "class Odd:\n    name = 'odd'\n    parameters = ('distil.lambda_kl',)\n    pools = 'best'\n"
    )
    monkeypatch.setattr(methods, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=r"odd\.py: pools is 'best'"):
        declared_pools("odd")


def test_an_unknown_method_is_named_with_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"no distillation method 'mekh'[\s\S]*vanilla"):
        load_method("mekh")


def test_a_file_without_declaration_is_named(tmp_path, monkeypatch) -> None:
    (tmp_path / "odd.py").write_text("class Odd:\n    name = 'odd'\n")
    monkeypatch.setattr(methods, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=r"odd\.py declares no method"):
        declared_parameters("odd")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import ast\nclass Odd(:\n", r"odd\.py, line 2: invalid syntax"),
        ("a\0b\n", r"odd\.py.*null bytes"),
        ("class Odd:\n    name = 'odd'\n    parameters = 3\n", r"odd\.py declares no method"),
        ("class Odd:\n    name = 'odd'\n    parameters = (1,)\n", r"odd\.py declares no method"),
    ],
)
def test_a_broken_file_is_named(tmp_path, monkeypatch, text: str, message: str) -> None:
    (tmp_path / "odd.py").write_text(text)
    monkeypatch.setattr(methods, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=message):
        declared_parameters("odd")


def test_vanilla_predicts_every_token_of_the_trace_and_none_of_the_prompt() -> None:
    (sequence,) = load_method("vanilla")(SETTINGS).prepare([trace()])
    assert [sequence.tokens[p + 1] for p in sequence.predicting] == list(range(11, 21))
    assert set(sequence.weights) == {1.0}
    assert sequence.teacher_rows == tuple(range(10))


def test_positions_without_both_mentions_are_no_refinement_positions() -> None:
    (sequence,) = load_method("mech")(SETTINGS).prepare([trace()])
    assert [at.query for at in sequence.refine] == [16]


def test_vanilla_positions_weighs_the_mechanistic_positions_and_changes_nothing_else() -> None:
    (plain,) = load_method("vanilla")(SETTINGS).prepare([trace()])
    (weighted,) = load_method("vanilla_positions")(SETTINGS).prepare([trace()])
    heavy = [p for p, w in zip(weighted.predicting, weighted.weights) if w == 3.0]
    assert heavy == [9, 10, 11, 16]
    assert set(weighted.weights) == {1.0, 3.0}
    assert weighted.tokens == plain.tokens
    assert weighted.predicting == plain.predicting


@pytest.mark.parametrize("name", method_names())
def test_traces_that_did_not_parse_are_not_trained_on(name: str) -> None:
    if declared_needs(name):
        pytest.skip("its sequences come from files as well: see the method's own tests")
    assert load_method(name)(SETTINGS).prepare([trace("unfinished")]) == []


@pytest.mark.parametrize("name", method_names())
def test_tuning_starts_from_the_study_s_own_values(name: str) -> None:
    assert declared_settings(name)[0] == {}
    assert tuned_method(tuned_method(name)) == tuned_method(name)


@pytest.mark.parametrize("name", ["vanilla", "unicott", "morsd", "semcot", "cwt", "mech"])
def test_methods_of_the_paper_s_table_offer_grids_of_equal_size(name: str) -> None:
    assert len(declared_settings(name)) == 4
    assert tuned_method(name) == name


def test_ablations_take_over_the_weights_of_what_they_are_a_part_of() -> None:
    ablations = [name for name in method_names() if name.startswith("mech_without")]
    for name in (*ablations, "p1_only", "p2_only", "random_pool", "vanilla_margin"):
        assert tuned_method(name) == "mech"
    assert tuned_method("vanilla_positions") == "vanilla"


@pytest.mark.parametrize(
    "settings", ['({"distil.lambda_kl": 0.1},)', '({}, {"distil.lambda_p1": 0.1})', "()"]
)
def test_a_grid_that_is_none_is_named(tmp_path, monkeypatch, settings: str) -> None:
    (tmp_path / "odd.py").write_text(
        "class Odd:\n    name = 'odd'\n    parameters = ('distil.lambda_kl',)\n"
        f"    settings_tried = {settings}\n"
    )
    monkeypatch.setattr(methods, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=r"odd\.py: settings_tried"):
        declared_settings("odd")
