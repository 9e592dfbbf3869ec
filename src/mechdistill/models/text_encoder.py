"""The frozen sentence encoder e(.) of the text space, the same for every model that is scored.

Its weights come inside an installed package; they are found without importing that package (which
would import a large library) and checked against a pinned sha256 before they are read; the files
beside them against the hashes that the package was built with, which the lock's hash covers.
"""

from __future__ import annotations

import base64
import importlib.metadata
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mechdistill.digests import sha256_of
from mechdistill.errors import InputError

MAX_PIECES = 512
"""Word pieces that are read of one text: all that the encoder has positions for. Its authors cut at
256, which would hide the last words of a long reasoning prefix; shorter texts are not affected."""


class TextEncoder:
    """Mean-pooled, unit-length sentence embeddings.

    Args:
        folder: holds `config.json`, `tokenizer.json` and `model.safetensors`.
        batch_size: texts in one forward pass; moves the values by about 1e-7.

    Attributes:
        dimension: length of an embedding.
        truncated: distinct texts so far that were longer than `MAX_PIECES`.
    """

    def __init__(self, folder: str | Path, batch_size: int) -> None:
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        quiet: Any = logging.disable_progress_bar
        quiet()  # else a bar of its own amid the rule's log
        source: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        self._tokenizer = AutoTokenizer.from_pretrained(str(folder), **source)
        self._model = AutoModel.from_pretrained(str(folder), use_safetensors=True, **source).eval()
        self._batch_size = batch_size
        self._cache: dict[str, npt.NDArray[np.float32]] = {}
        self.dimension: int = self._model.config.hidden_size
        self.truncated = 0

    @classmethod
    def packaged(cls, name: str, sha256: str, batch_size: int) -> TextEncoder:
        """The encoder that the installed distribution `name` ships, if its weights are `sha256`.

        Raises:
            InputError: the package is not installed, its weights are not the pinned ones, or a
                file beside them was changed.
        """
        folder = packaged_folder(name)
        refuse_changed_files(name, folder)
        found = sha256_of(folder / "model.safetensors")
        if found != sha256:
            raise InputError(
                f"the weights of {name} have sha256 {found}, the study pins {sha256}",
                f"install the pinned version of {name} (envs/), or change text_encoder.sha256",
            )
        return cls(folder, batch_size)

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embeddings [n, dimension] of unit length; a text met before is not computed again."""
        new = [text for text in dict.fromkeys(texts) if text not in self._cache]
        if new:
            self._compute(new)
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack([self._cache[text] for text in texts])

    def _compute(self, texts: list[str]) -> None:
        pieces = self._tokenizer(texts, truncation=True, max_length=MAX_PIECES)["input_ids"]
        full = self._tokenizer(texts, truncation=False, verbose=False)["input_ids"]
        self.truncated += sum(len(ids) > MAX_PIECES for ids in full)
        # texts of like length share a batch, so that little is spent on padding
        order = sorted(range(len(texts)), key=lambda i: (len(pieces[i]), texts[i]))
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            for i, embedding in zip(batch, self._forward([pieces[i] for i in batch]), strict=True):
                self._cache[texts[i]] = embedding

    @torch.inference_mode()
    def _forward(self, pieces: list[list[int]]) -> npt.NDArray[np.float32]:
        padded = self._tokenizer.pad({"input_ids": pieces}, return_tensors="pt")
        hidden = self._model(**padded).last_hidden_state
        mask = padded["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * mask).sum(1) / mask.sum(1)
        unit: npt.NDArray[np.float32] = torch.nn.functional.normalize(pooled, dim=-1).numpy()
        return unit


def packaged_folder(name: str) -> Path:
    """The model folder inside the installed distribution `name`, which is not imported.

    Raises:
        InputError: there is no such package, or it holds no model.
    """
    spec = importlib.util.find_spec(name.replace("-", "_"))
    places = list(spec.submodule_search_locations or ()) if spec else []
    folders = [Path(place) / "model" for place in places]
    for folder in folders:
        if (folder / "model.safetensors").is_file():
            return folder
    raise InputError(
        f"text_encoder.name: no installed package {name} holds model/model.safetensors",
        "make the environment again from the lock file in envs/",
    )


def refuse_changed_files(name: str, folder: Path) -> None:
    """Compare configuration and tokenizer in `folder` with what the package `name` was built with.

    Raises:
        InputError: a file differs, or is none of the package's.
    """
    listed = {
        str(file.locate()): file.hash.value
        for file in importlib.metadata.files(name) or ()
        if file.hash is not None and file.hash.mode == "sha256"
    }
    for path in sorted(folder.glob("*.json")):
        digest = base64.urlsafe_b64encode(bytes.fromhex(sha256_of(path))).decode().rstrip("=")
        if listed.get(str(path)) != digest:
            raise InputError(
                f"{path} is not the file that the package {name} was built with",
                f"install {name} again from the lock (envs/encoder.txt)",
            )
