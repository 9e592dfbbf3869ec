"""A T5 that is fine-tuned to answer texts with texts, in one file with its tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import (
    AutoTokenizer,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from mechdistill.errors import InputError
from mechdistill.models.batching import pad_right
from mechdistill.progress import track

WEIGHT_DECAY = 0.01
CLIP = 1.0
"""Largest gradient norm."""
IGNORED = -100
_ROLES = ("pad_token", "eos_token", "unk_token")


class TextToText:
    """A T5 and its fast tokenizer.

    Args:
        longest_input: tokens of a text that are read, its end token among them.
    """

    def __init__(self, model: Any, tokenizer: Any, longest_input: int) -> None:
        self.model, self.tokenizer, self.longest_input = model, tokenizer, longest_input
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model.to(self._device)

    @classmethod
    def from_folder(cls, folder: Path, longest_input: int) -> Self:
        """From the checkpoint in a folder, in fp32.

        Raises:
            InputError: it cannot be read, or is no T5.
        """
        source: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            model = T5ForConditionalGeneration.from_pretrained(
                folder, dtype=torch.float32, use_safetensors=True, **source
            )
            tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=True, **source)
        except Exception as error:  # transformers raises many kinds
            raise InputError(
                f"{folder} cannot be read as a T5: {error}",
                "give the folder of a T5 with config.json, .safetensors weights and tokenizer.json",
            ) from error
        return cls(model, tokenizer, longest_input)

    @classmethod
    def of(cls, tensors: dict[str, Tensor], about: dict[str, str]) -> Self:
        """From `contents`."""
        with torch.random.fork_rng(devices=[]):  # the weights drawn here are overwritten at once
            model = T5ForConditionalGeneration(T5Config(**json.loads(about["config"])))
        model.load_state_dict(tensors)
        tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
            tokenizer_object=Tokenizer.from_str(about["tokenizer"]), **json.loads(about["roles"])
        )
        return cls(model, tokenizer, int(about["longest_input"]))

    def contents(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Tensors and text from which it can be made again."""
        roles = {role: getattr(self.tokenizer, role) for role in _ROLES}
        about = {
            "config": json.dumps(self.model.config.to_diff_dict(), sort_keys=True),
            "tokenizer": self.tokenizer.backend_tokenizer.to_str(),
            "roles": json.dumps(roles),
            "longest_input": str(self.longest_input),
        }
        return dict(self.model.state_dict()), about

    def loss(self, texts: Sequence[str], answers: Sequence[str]) -> Tensor:
        """Mean negative log-likelihood of the answers' tokens."""
        ids, mask = self._padded([self._ids(text) for text in texts])
        targets = pad_right([self.answer_ids(answer) for answer in answers], IGNORED)
        found = self.model(input_ids=ids, attention_mask=mask, labels=targets.to(self._device))
        loss: Tensor = found.loss
        return loss

    def fit(
        self, batches: Iterable[tuple[Sequence[str], Sequence[str]]], steps: int, rate: float
    ) -> None:
        """One AdamW step a batch (texts, answers), at a constant rate and without dropout."""
        self.model.eval()
        optimiser = torch.optim.AdamW(self.model.parameters(), lr=rate, weight_decay=WEIGHT_DECAY)
        for texts, answers in track(batches, "simulator step", steps):
            optimiser.zero_grad()
            self.loss(texts, answers).backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
            optimiser.step()

    @torch.inference_mode()
    def write(self, texts: Sequence[str], batch_size: int, longest: int) -> list[str]:
        """The greedy answer to each text, of at most `longest` tokens."""
        self.model.eval()
        written: list[str] = []
        for start in track(range(0, len(texts), batch_size), f"answers, batch of {batch_size}"):
            ids, mask = self._padded([self._ids(t) for t in texts[start : start + batch_size]])
            found = self.model.generate(
                input_ids=ids, attention_mask=mask, max_new_tokens=longest, do_sample=False
            )
            written += self.tokenizer.batch_decode(found, skip_special_tokens=True)
        return written

    def answer_ids(self, answer: str) -> list[int]:
        """Tokens of an answer, its end token included."""
        ids: list[int] = self.tokenizer(answer, add_special_tokens=False)["input_ids"]
        return [*ids, self.tokenizer.eos_token_id]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return [*ids[: self.longest_input - 1], self.tokenizer.eos_token_id]

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        ids = pad_right(rows, self.tokenizer.pad_token_id)
        mask = pad_right([[1] * len(row) for row in rows], 0)
        return ids.to(self._device), mask.to(self._device)
