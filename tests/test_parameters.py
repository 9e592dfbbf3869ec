import json

import pytest

from mechdistill.errors import InputError
from mechdistill.parameters import Parameters


def test_a_section_may_be_taken_whole() -> None:
    p = Parameters.from_json(json.dumps({"teacher.architecture": {"layers": 4}}))
    assert p["teacher.architecture"] == {"layers": 4}


def test_an_undeclared_key_is_named() -> None:
    p = Parameters({"seed": 7})
    with pytest.raises(KeyError, match=r"distil\.lambda_p1.*declared: seed"):
        p["distil.lambda_p1"]


def test_a_part_of_a_declared_section_is_undeclared() -> None:
    p = Parameters({"teacher.architecture": {"layers": 4}})
    with pytest.raises(KeyError):
        p["teacher.architecture.layers"]


def test_unread_keys_are_listed_until_they_are_read() -> None:
    p = Parameters({"b": 1, "a": 2, "c": 3})
    assert p.unread() == ("a", "b", "c")
    p["b"]
    assert p.unread() == ("a", "c")


def test_asking_whether_a_key_is_declared_does_not_read_it() -> None:
    p = Parameters({"a": 1})
    assert "a" in p
    assert "b" not in p
    assert p.unread() == ("a",)


@pytest.mark.parametrize("text", ["{", "[1]", "3", ""])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--params"):
        Parameters.from_json(text)
