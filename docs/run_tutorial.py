"""Run tutorial.ipynb, store what it shows, and the README's figure with it: `make tutorial`."""

import base64
import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
FIGURE_OF = "sweep.plot()"


def main() -> None:
    """Write the notebook and the figure."""
    # of tqdm, where there are no widgets: none of the reader's business
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"
    notebook = nbformat.read(HERE / "tutorial.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False).execute()
    notebook.metadata["language_info"] = {"name": "python"}  # not this machine's version
    nbformat.write(notebook, HERE / "tutorial.ipynb")
    (cell,) = [cell for cell in notebook.cells if cell.source == FIGURE_OF]
    (HERE / "tutorial.png").write_bytes(base64.b64decode(cell.outputs[0].data["image/png"]))


if __name__ == "__main__":
    main()
