from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdistill import study
from mechdistill.data import notes, student_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.errors import InputError
from mechdistill.joined_study import is_joined
from mechdistill.study import WINDOW_KEYS, Study, load_study, schema_text
from mechdistill.study_files import study_names
from mechdistill.yaml_mapping import read_yaml_mapping

ROOT = Path(__file__).resolve().parents[1]
ORDINARY = [name for name in study_names(ROOT) if not is_joined({"study": name}, ROOT)]


@pytest.fixture(scope="module")
def embedded() -> Study:
    return load_study({}, ROOT)


@pytest.fixture
def copied_root(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "studies", tmp_path / "studies")
    return tmp_path


def nested(key: str, value: Any) -> dict[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


@pytest.mark.parametrize("name", ORDINARY)
def test_every_study_is_valid_and_knows_its_name(name: str) -> None:
    assert load_study({"study": name}, ROOT).study == name


def test_the_study_of_params_yaml_is_the_default(embedded: Study) -> None:
    assert embedded.study == "embedded"


def test_an_overlay_changes_its_keys_and_keeps_the_rest(embedded: Study) -> None:
    smoke = load_study({"study": "smoke"}, ROOT)
    assert smoke.data.world.regions < embedded.data.world.regions
    assert smoke.data.world.evidence_per_region == embedded.data.world.evidence_per_region


def test_a_wrong_value_of_the_command_line_is_laid_to_config_and_no_other_one(
    copied_root: Path,
) -> None:
    with pytest.raises(InputError) as caught:
        load_study({"study": "smoke", "seed": "many"}, ROOT)
    assert caught.value.what.startswith('--config: seed is "many"')
    (copied_root / "studies" / "odd.yaml").write_text("heads: {pool_size: 1000}\n")
    with pytest.raises(InputError) as caught:  # only the name came from the command line
        load_study({"study": "odd"}, copied_root)
    assert caught.value.what.startswith("params.yaml + studies/odd.yaml: heads.pool_size is 1000")


def test_the_command_line_wins_over_the_overlay() -> None:
    study = load_study({"study": "smoke", "distil": {"seeds": [5]}}, ROOT)
    assert study.distil.seeds == (5,)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("distil.lamda_p2", 0.3, r"distil\.lamda_p2 is an unknown key.*did you mean lambda_p2"),
        ("colour", "red", r"colour is an unknown key"),
        ("distil.lambda_p2", -0.1, r"distil\.lambda_p2 is -0\.1 \(allowed: a number at least 0"),
        ("distil.lambda_p2", "0.3", r"distil\.lambda_p2 is \"0\.3\" \(allowed: a number"),
        ("distil.lambda_p2", float("nan"), r"distil\.lambda_p2 is NaN"),
        ("distil.lambda_p2", None, r"distil\.lambda_p2 is null"),
        ("distil.lambda_p2", True, r"distil\.lambda_p2 is true"),
        ("traces.early_tokens", 30.0, r"traces\.early_tokens is 30\.0 \(allowed: a whole number"),
        ("significance.alpha", 1.0, r"significance\.alpha is 1\.0 .*above 0.* and below 1"),
        ("data.world.name", "wiki", r"data\.world\.name is \"wiki\" \(allowed: one of icd, foldoc"),
        ("distil.seeds", [0, "one"], r"distil\.seeds\[1\] is \"one\""),
        ("distil.seeds", [], r"distil\.seeds is \[\]"),
        ("distil.seeds", [1, 1], r"seeds is \[1, 1\]"),
        ("distil.student.family", "gpt9", r"distil\.student: family names 'gpt9' .*llama, qwen3"),
        ("distil.student.sliding_window", 8, r"sliding_window is 8: family llama takes no such"),
        ("distil.student_tokenizer", {"model": "bpe"}, r"student_tokenizer\.vocabulary is missing"),
        (
            "distil.student_tokenizer",
            {"model": "bpe", "vocabulary": 258},
            r"student_tokenizer\.vocabulary is 258 \(allowed: a whole number at least 259",
        ),
        ("distil.methods", ["vanilla", "magic"], r"distil: methods names 'magic'.*mech, .*vanilla"),
        ("distil.training", 400, r"distil\.training is 400 \(allowed: a section with the keys"),
        ("distil.training.warmup_steps", 401, r"distil\.training: warmup_steps is 401"),
        ("teacher.architecture.head_dim", 7, r"head_dim is 7 .*at least 2 and a multiple of 2"),
        ("teacher.architecture.kv_heads", 3, r"kv_heads is 3: it must divide heads"),
        ("teacher.checkpoint.kind", "web", r"checkpoint\.kind is \"web\" .*package, folder, hub"),
        ("teacher.checkpoint.files", {"a.gguf": "0"}, r"files\.a\.gguf is \"0\" .*\[0-9a-f\]"),
        ("teacher.architecture", None, r"teacher: training given: give architecture and training"),
        ("patching.bins", [2, 1], r"bins is \[2, 1\]"),
        ("data.world.groups_in_context", 3, r"groups_in_context is 3"),
        ("data.world.problems_min", 4, r"problems_min is 4"),
        ("data.world.groups_in_context", 4, r"at least problems_max \+ 2 = 5"),
        ("data.world.groups_in_context", 24, r"below regions, which is 24"),
        ("data.world.problems_max", 7, r"problems_max is 7 .*at least 1 and at most 6"),
        ("data.world.never_gold", 25, r"never_gold is 25: it must be at most regions, which is 24"),
        ("evaluate.precision_at", [1, 1], r"precision_at is \[1, 1\]: each may stand there once"),
        ("heads.pool_size", 13, r"heads\.pool_size is 13: it must be at most 12"),
        ("report.worked_example", 100, r"report\.worked_example is 100"),
        ("patching.generated_examples", 61, r"patching\.generated_examples is 61"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(key: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_study(nested(key, value), ROOT)


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("mimic-iv", "data.source.restricted", False, "its notes are restricted"),
        ("mimic-iv", "report.worked_example", 0, "no note may be shown; it must be null"),
        ("mimic-iv", "data.source.historical_codes", True, "belongs to mimic-iii"),
        ("mimic-iv", "data.source", None, "source is not given: the section belongs to the world"),
        ("mimic-iii", "data.world.name", "icd", "world.name is icd and source is given"),
        ("wikiseealso", "data.source.split_folder", "x", "it has its own split"),
        ("wikiseealso", "data.prompt.style", "chat", "titles take style plain"),
        ("wikiseealso", "data.source.version", "", r"version is \"\""),
    ],
)
def test_a_source_that_does_not_fit_is_refused(
    name: str, key: str, value: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_study({"study": f"paper-{name}"} | nested(key, value), ROOT)


SERVER = {
    **{"base_url": "http://localhost:8000/v1", "model": "teacher", "concurrency": 4},
    **{"requests_per_second": None, "timeout": 600.0, "retries": 5},
    "restricted_data_may_leave": False,
}


def served(study: str, **changes: Any) -> dict[str, Any]:
    generation = {"backend": "server", "server": SERVER | changes}
    return {"study": study, "teacher": {"generation": generation}}


def test_a_server_may_write_the_traces() -> None:
    server = load_study(served("smoke"), ROOT).teacher.generation.server
    assert server is not None and server.model == "teacher"


def test_a_server_changes_nothing_that_the_teacher_is_trained_by(embedded: Study) -> None:
    keys = ["teacher.seed", "teacher.architecture", "teacher.training"]
    assert load_study(served("embedded"), ROOT).subset(keys) == embedded.subset(keys)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "http://me:secret@gpu/v1", "http://gpu/v1?key=1"]
)
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(InputError, match=r"generation\.server\.base_url is "):
        load_study(served("smoke", base_url=url), ROOT)


def test_a_backend_without_its_section_is_refused() -> None:
    with pytest.raises(InputError, match="backend is server and server is null"):
        load_study({"study": "smoke", "teacher": {"generation": {"backend": "server"}}}, ROOT)
    with pytest.raises(InputError, match="backend is transformers and server is not null"):
        load_study({"study": "smoke", "teacher": {"generation": {"server": SERVER}}}, ROOT)


def test_restricted_notes_go_to_no_other_machine_unless_told_so() -> None:
    away = {"base_url": "http://gpu-7:8000/v1"}
    with pytest.raises(InputError, match=r"leads to another machine and data\.source is restric"):
        load_study(served("paper-mimic-iv", **away), ROOT)
    load_study(served("paper-mimic-iv"), ROOT)
    load_study(served("paper-mimic-iv", **away, restricted_data_may_leave=True), ROOT)
    load_study(served("smoke", **away), ROOT)


def test_texts_that_the_user_brings_need_a_teacher_from_a_checkpoint(embedded: Study) -> None:
    from_scratch = {
        **{"architecture": embedded.teacher.architecture.model_dump()},
        **{"training": embedded.teacher.training.model_dump(), "checkpoint": None},
        "fine_tuning": None,
    }
    with pytest.raises(InputError, match="need a teacher from a checkpoint"):
        load_study({"study": "paper-mimic-iv", "teacher": from_scratch}, ROOT)


def test_a_source_changes_no_parameter_of_other_studies(embedded: Study) -> None:
    assert "source" not in embedded.subset(["data"])


LISTS: dict[str, Any] = {"number": 24, "sweep": [10, "all"], "force_gold": True, "list_first": True}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"number": 8},
            r"candidates asks for lists of 8: .* 2 \* \(problems_max \+ 2\) = 10 labels",
        ),
        (
            {"number": 144},
            r"candidates asks for lists of 144: .* fewer than the world's 144, or all",
        ),
        ({"sweep": [24, 200]}, r"candidates asks for lists of 200"),
        ({"sweep": ["all", 24]}, r"sweep is \['all', 24\]: it must increase .* all comes last"),
        ({"sweep": [24, 24]}, r"sweep is \[24, 24\]: it must increase"),
        ({"number": "most"}, r"data\.candidates\.number"),
        ({"force_gold": 1}, r"data\.candidates\.force_gold is 1"),
        ({"retriever": "dense"}, r"data\.candidates\.retriever is an unknown key"),
    ],
)
def test_lists_that_cannot_be_made_are_refused(change: dict[str, Any], message: str) -> None:
    load_study({"data": {"candidates": LISTS}}, ROOT)
    with pytest.raises(InputError, match=message):
        load_study({"data": {"candidates": LISTS | change}}, ROOT)


def test_lists_that_are_not_asked_for_change_no_parameter(embedded: Study) -> None:
    assert "candidates" not in embedded.subset(["data"])


def test_a_family_that_slides_takes_a_window() -> None:
    changes = {"family": "gemma3_text", "sliding_window": 32, "full_attention_every": 2}
    study = load_study({"distil": {"student": changes}}, ROOT)
    student = json.loads(study.subset(["distil.student"]))["distil.student"]
    assert student.items() >= changes.items()
    assert "sliding_rope_theta" not in student


def test_keys_of_windows_that_are_not_given_change_no_parameter() -> None:
    plain = load_study({}, ROOT).subset(["distil.student", "teacher"])
    assert not any(key in plain for key in WINDOW_KEYS)
    nulls = {"distil": {"student": dict.fromkeys(WINDOW_KEYS)}}
    assert load_study(nulls, ROOT).subset(["distil.student", "teacher"]) == plain


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "qwen3", "full_attention_every": 2}, "says nothing without sliding_window"),
        ({"family": "qwen3", "sliding_window": 8, "sliding_rope_theta": 9.0}, "no such key"),
        ({"family": "gemma3_text", "sliding_window": 0}, r"sliding_window is 0 \(allowed: a whole"),
    ],
)
def test_windows_that_no_model_has_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_study({"distil": {"student": changes}}, ROOT)


SHA256 = "0" * 64
CHECKPOINT = {"kind": "folder", "name": "f", "revision": None, "files": {"a.gguf": SHA256}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"files": {"a.gguf": SHA256, "b.gguf": SHA256}}, r"files names a\.gguf, b\.gguf"),
        ({"files": {"a.gguf": SHA256, "b.safetensors": SHA256}}, r"one \.gguf file, or"),
        ({"files": {"pytorch_model.bin": SHA256}}, r"files names pytorch_model\.bin"),
        ({"kind": "hub"}, r"a revision belongs to a hub's"),
        ({"revision": "main"}, r"a revision belongs to a hub's"),
    ],
)
def test_a_checkpoint_of_which_too_much_or_too_little_is_said_is_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_study({"teacher": {"checkpoint": CHECKPOINT | change}}, ROOT)


def test_the_study_s_largest_number_of_problems_is_that_of_the_notes() -> None:
    assert study.MAX_PROBLEMS == notes.MAX_PROBLEMS
    assert study.SMALLEST_BPE == student_tokenizer.SMALLEST


def test_the_study_s_limits_of_the_candidate_list_are_those_of_the_world() -> None:
    base = load_study({}, ROOT).model_dump(mode="json")["data"]["world"]
    for groups in range(3, 26):
        for most in range(1, 7):
            world = base | {"groups_in_context": groups, "problems_max": most, "problems_min": 1}
            taken = []
            for check in (
                partial(study.World.model_validate, world),
                partial(WorldSettings.of, 0, world),
            ):
                try:
                    check()
                    taken.append(True)
                except (InputError, ValueError):
                    taken.append(False)
            assert taken[0] == taken[1], world


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "t5"}, "kind is t5 and checkpoint is null"),
        (
            {
                "checkpoint": {
                    "kind": "folder",
                    "name": "t5",
                    "revision": None,
                    "files": {"model.safetensors": "0" * 64},
                }
            },
            "kind is encoder and checkpoint is not null",
        ),
        ({"notes": 100_000}, r"evaluate\.simulator\.notes is 100000: it must be at most 200"),
    ],
)
def test_simulators_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_study({"study": "smoke", "evaluate": {"simulator": changes}}, ROOT)


def test_all_wrong_keys_are_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        load_study({"seed": -1, "distil": {"lambda_p1": -1}}, ROOT)
    assert "seed is -1" in str(caught.value)
    assert "distil.lambda_p1 is -1" in str(caught.value)


def test_the_file_that_holds_the_wrong_value_is_named(copied_root: Path) -> None:
    (copied_root / "studies/smoke.yaml").write_text("distil: {lambda_p1: -1}\n")
    with pytest.raises(InputError, match=r"studies/smoke\.yaml: distil\.lambda_p1 is -1"):
        load_study({"study": "smoke"}, copied_root)


def test_a_missing_key_is_named(copied_root: Path) -> None:
    path = copied_root / "params.yaml"
    path.write_text(path.read_text().replace("  lambda_p2: 0.3\n", ""))
    with pytest.raises(InputError, match=r"params\.yaml: distil\.lambda_p2 is missing"):
        load_study({}, copied_root)


@pytest.mark.parametrize("name", ["smok", "", 3, None, "../smoke"])
def test_an_unknown_study_is_answered_with_the_known_ones(name: Any) -> None:
    with pytest.raises(InputError, match=r"no study[^$]*embedded, .*foldoc, .*pretrained, smoke"):
        load_study({"study": name}, ROOT)


def test_an_overlay_under_another_name_is_refused(copied_root: Path) -> None:
    shutil.copy(copied_root / "studies/smoke.yaml", copied_root / "studies/other.yaml")
    with pytest.raises(InputError, match=r"studies/other\.yaml: study is 'smoke'"):
        load_study({"study": "other"}, copied_root)


def test_a_study_cannot_be_changed(embedded: Study) -> None:
    with pytest.raises(ValueError, match="frozen"):
        embedded.seed = 8  # type: ignore[misc]


class TestSubset:
    def test_holds_exactly_the_keys_asked_for(self, embedded: Study) -> None:
        text = embedded.subset(
            ["seed", "distil.lambda_p1", "patching.bins", "teacher.architecture"]
        )
        values = json.loads(text)
        assert set(values) == {"seed", "distil.lambda_p1", "patching.bins", "teacher.architecture"}
        assert values["patching.bins"] == [1, 2, 4, 8, 16]
        assert values["teacher.architecture"]["layers"] == 4

    def test_does_not_depend_on_the_order_of_keys(self, embedded: Study) -> None:
        assert embedded.subset(["seed", "heads"]) == embedded.subset(["heads", "seed"])

    @settings(max_examples=20)
    @given(number=st.integers(min_value=0, max_value=10**6))
    def test_a_number_has_one_text_however_it_is_written(self, number: int) -> None:
        whole, real = (
            load_study({"distil": {"lambda_p1": value}}, ROOT) for value in (number, float(number))
        )
        assert whole.subset(["distil.lambda_p1"]) == real.subset(["distil.lambda_p1"])

    @settings(max_examples=30)
    @given(
        st.floats(min_value=0, allow_nan=False, allow_infinity=False),
        st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    )
    def test_values_survive_the_text(self, p1: float, p2: float) -> None:
        study = load_study({"distil": {"lambda_p1": p1, "lambda_p2": p2}}, ROOT)
        values = json.loads(study.subset(["distil.lambda_p1", "distil.lambda_p2"]))
        assert values == {"distil.lambda_p1": p1, "distil.lambda_p2": p2}

    def test_two_values_swapped_give_another_text(self) -> None:
        keys = ["distil.lambda_p1", "distil.lambda_p2"]
        one = load_study({"distil": {"lambda_p1": 0.5, "lambda_p2": 1.0}}, ROOT)
        other = load_study({"distil": {"lambda_p1": 1.0, "lambda_p2": 0.5}}, ROOT)
        assert one.subset(keys) != other.subset(keys)

    @pytest.mark.parametrize("key", ["distil.lambda", "nothing", "seed.more", "", "distil."])
    def test_a_key_that_does_not_exist_is_named(self, embedded: Study, key: str) -> None:
        with pytest.raises(InputError, match="the study has no parameter"):
            embedded.subset([key])


class TestSchema:
    SCHEMA = ROOT / "workflow/schemas/params.schema.json"

    def test_the_file_is_that_of_the_code(self) -> None:
        assert self.SCHEMA.read_text(encoding="utf-8") == schema_text(), "run `make schema`"

    def test_params_yaml_satisfies_it(self) -> None:
        schema = json.loads(self.SCHEMA.read_text(encoding="utf-8"))
        jsonschema.validate(read_yaml_mapping(ROOT / "params.yaml"), schema)

    def test_it_refuses_an_unknown_key(self) -> None:
        schema = json.loads(self.SCHEMA.read_text(encoding="utf-8"))
        values = read_yaml_mapping(ROOT / "params.yaml") | {"colour": "red"}
        with pytest.raises(jsonschema.ValidationError, match="colour"):
            jsonschema.validate(values, schema)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"data": {"world": {"name": "foldoc"}}}, "world.name is foldoc and foldoc is not given"),
        (
            {"study": "foldoc", "data": {"world": {"name": "icd"}}},
            "world.name is icd and foldoc is given",
        ),
        ({"study": "foldoc", "data": {"prompt": {"demonstrations": 1}}}, "speak of diseases"),
        ({"study": "foldoc", "data": {"foldoc": {"task": "links_to"}}}, "one of links, see_also"),
    ],
)
def test_the_dictionary_belongs_to_its_world_alone(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_study(values, ROOT)


def test_another_world_s_section_is_no_parameter_of_this_one(embedded: Study) -> None:
    assert "foldoc" not in embedded.subset(["data"])
    assert '"task":"links"' in load_study({"study": "foldoc"}, ROOT).subset(["data.foldoc"])


def test_an_overlay_lies_on_those_that_it_extends_the_last_on_top(copied_root: Path) -> None:
    folder = copied_root / "studies"
    (folder / "low.yaml").write_text("seed: 1\ntraces: {early_tokens: 11}\nheads: {seed: 1}\n")
    (folder / "high.yaml").write_text("study: high\nseed: 2\ntraces: {batch_size: 22}\n")
    (folder / "both.yaml").write_text("extends: [low, high]\nheads: {seed: 3}\n")
    both = load_study({"study": "both"}, copied_root)
    assert both.study == "both"
    assert (both.seed, both.traces.early_tokens, both.traces.batch_size) == (2, 11, 22)
    assert both.heads.seed == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: smoke", r'studies/odd\.yaml: extends is "smoke" \(allowed: a list of names'),
        ("extends: [smoke, 7]", r"studies/odd\.yaml: extends is \[\"smoke\", 7\]"),
        ("extends: [smoke, smoke]", r"extends is .*: each may stand there once"),
        ("extends: [nothing]", r"odd\.yaml: extends\[0\] names 'nothing': there is no such file"),
        ("extends: [embedded]", r"extends\[0\] names 'embedded': there is no such file"),
        ("extends: [smoke, next]", r"extends\[1\] names 'next', which extends others itself"),
        ("extends: [embedded-full]", r"names 'embedded-full', which joins other studies"),
    ],
)
def test_what_cannot_be_extended_is_named(copied_root: Path, text: str, message: str) -> None:
    (copied_root / "studies" / "odd.yaml").write_text(f"{text}\n")
    (copied_root / "studies" / "next.yaml").write_text("extends: [smoke]\n")
    with pytest.raises(InputError, match=message):
        load_study({"study": "odd"}, copied_root)


def test_a_wrong_key_is_laid_to_the_overlay_that_is_extended(copied_root: Path) -> None:
    (copied_root / "studies" / "low.yaml").write_text("heads: {pool_size: many}\n")
    (copied_root / "studies" / "odd.yaml").write_text("extends: [low]\nseed: 3\n")
    with pytest.raises(InputError, match=r"^studies/low\.yaml: heads\.pool_size is"):
        load_study({"study": "odd"}, copied_root)


def test_a_joined_study_has_no_parameters_of_its_own() -> None:
    with pytest.raises(InputError, match=r"studies/embedded-full\.yaml joins other studies"):
        load_study({"study": "embedded-full"}, ROOT)
