"""No way in for code or bytes of others: no pickle, no code of a checkpoint, nothing unverified."""

from __future__ import annotations

import ast
import functools
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, LlamaConfig, T5Config

from mechdistill.errors import InputError
from mechdistill.models.conversion import plain_model
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.models.text_to_text import TextToText

ROOT = Path(__file__).resolve().parents[1]
CODE = sorted(
    [*(ROOT / "src").rglob("*.py"), *(ROOT / "workflow").rglob("*.py"), *ROOT.glob("docs/*.py")]
)
PICKLES = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
WAYS_IN = {"torch.load", "torch.hub.load", "numpy.load", "np.load", "pd.read_pickle"}


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call in a file, by the dotted name it is called by."""
    for node in nodes(path):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def settings(call: ast.Call, path: Path) -> dict[str, str]:
    """Keyword arguments of a call as text, those of `**source` from where it is written."""
    given = {word.arg: ast.unparse(word.value) for word in call.keywords if word.arg}
    spread = any(word.arg is None for word in call.keywords)
    for name, value in re.findall(r'"(\w+)": (True|False)', path.read_text()) if spread else ():
        given.setdefault(name, value)
    return given


@pytest.mark.parametrize("path", CODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_code_reads_pickle(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            assert not {alias.name.partition(".")[0] for alias in node.names} & PICKLES
        if isinstance(node, ast.ImportFrom):
            assert str(node.module).partition(".")[0] not in PICKLES
    assert not {name for name, _ in calls(path)} & WAYS_IN


def test_what_transformers_loads_brings_no_code_and_no_pickle() -> None:
    loading = [
        (path, name, settings(call, path))
        for path in CODE
        for name, call in calls(path)
        if name.endswith(".from_pretrained")
    ]
    assert len(loading) > 5
    for path, name, given in loading:
        assert given.get("trust_remote_code") == "False", f"{path}: {name}"
        if "Tokenizer" not in name and "Config" not in name:
            assert given.get("use_safetensors") == "True", f"{path}: {name}"


class Planted:
    """Pickled, it makes a file wherever it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("read", ["teacher", "encoder", "simulator"])
def test_a_planted_pickle_is_refused_and_not_run(tmp_path: Path, read: str) -> None:
    folder, mark = tmp_path / "model", tmp_path / "it ran"
    small = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 9}
    kind = {"teacher": LlamaConfig, "encoder": BertConfig, "simulator": T5Config}[read]
    kind(**small, num_attention_heads=2).save_pretrained(folder)
    torch.save({"weights": Planted(mark)}, folder / "pytorch_model.bin")
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", encoding="utf-8")
    reads = {
        "teacher": lambda: plain_model(folder, None),
        "encoder": lambda: TextEncoder(folder, batch_size=1),
        "simulator": lambda: TextToText.from_folder(folder, longest_input=8),
    }
    with pytest.raises((InputError, OSError)):
        reads[read]()
    assert not mark.exists()


def test_the_planted_pickle_would_have_run(tmp_path: Path) -> None:
    """Else the test above shows nothing."""
    pickle.loads(pickle.dumps(Planted(tmp_path / "it ran")))
    assert (tmp_path / "it ran").exists()
