"""The tutorial and the README's lines run; what is stored of the tutorial came from running it."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.models.tiny import eager_model
from tests.small_tokenizers import byte_level

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs/tutorial.ipynb"
FIGURE = ROOT / "docs/tutorial.png"


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def executed(stored, tmp_path_factory):
    notebook = nbformat.from_dict(stored)
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT / "src"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("PYTHONWARNINGS", "ignore:IProgress not found")  # as docs/run_tutorial.py
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(folder / name.lower()))
        client = NotebookClient(
            notebook,
            timeout=600,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        )
        return client.execute()


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell):
    """What kinds of output a cell has."""
    return [sorted(output.get("data", {"text": None})) for output in cell.outputs]


def printed(notebook, pattern):
    texts = [o.text for cell in code(notebook) for o in cell.outputs if o.output_type == "stream"]
    match = re.search(pattern, "".join(texts))
    assert match
    return [int(group) for group in match.groups()]


def test_every_cell_runs_and_shows_what_is_stored_of_it(stored, executed):
    assert [shown(cell) for cell in code(executed)] == [shown(cell) for cell in code(stored)]
    figures = [cell for cell in code(executed) if ".plot(" in cell.source]
    assert len(figures) == 4
    assert all("image/png" in shown(cell)[-1] for cell in figures)


@pytest.mark.parametrize("which", ["stored", "executed"])
def test_toy_has_learnt_what_the_notebook_looks_for(which, request):
    right, of = printed(request.getfixturevalue(which), r"decides (\d+) of (\d+) held-out")
    assert right / of > 0.9


def test_stored_outputs_are_of_one_run_from_top_to_bottom(stored):
    assert [cell.execution_count for cell in code(stored)] == [*range(1, len(code(stored)) + 1)]
    kinds = {output.output_type for cell in code(stored) for output in cell.outputs}
    assert kinds == {"execute_result", "stream"}  # no error, no warning on the way
    streams = {o.name for c in code(stored) for o in c.outputs if o.output_type == "stream"}
    assert streams == {"stdout"}


def test_stored_notebook_is_small_and_names_no_machine(stored):
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 400_000
    assert not re.search(r"/(home|root|work|tmp|usr)/", text)
    assert not any(cell.metadata for cell in stored.cells)


def test_figure_of_the_readme_is_the_notebooks_own(stored):
    assert f"]({FIGURE.relative_to(ROOT)})" in (ROOT / "README.md").read_text(encoding="utf-8")
    (cell,) = [cell for cell in code(stored) if cell.source == "sweep.plot()"]
    assert FIGURE.read_bytes() == base64.b64decode(cell.outputs[0].data["image/png"])
    assert FIGURE.stat().st_size < 100_000


def test_lines_of_the_readme_run():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if "score_prompts" in block]
    assert len([line for line in block.splitlines() if line and "import" not in line]) <= 5
    prompt = "Note: swollen legs, sudden. Which one is it?"
    given = {"prompt": prompt, "corrupted": prompt.replace("sudden", "lately")}
    given["reasoning"] = " Region: heart failure. So"
    tokenizer = byte_level([*given.values(), " acute chronic sudden lately"] * 2, size=340)
    model = eager_model("qwen3", vocab_size=len(tokenizer)).train()
    names = {**given, "model": model, "tokenizer": tokenizer}
    exec(compile(block, "README.md", "exec"), names)
    heads = model.config.num_hidden_layers * model.config.num_attention_heads
    assert len(names["scores"].of("coarse")) == heads
    assert len(names["sweep"].summary) == 4 * heads
    assert model.training
