"""Tokenizers: the world's own, one token a word or concept, and any other fast one, on file.

Which tokens begin, end and pad a text, and the chat template, belong to the tokenizer and stand in
its file. A tokenizer's padding may be its end token: nothing here or behind it tells padding by id.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from mechdistill.artifacts import how_to_make, replacing
from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import MAX_PROBLEMS
from mechdistill.data.prompts import (
    ANSWER,
    CANDIDATES,
    LISTING,
    OPTIONS,
    OVERVIEW,
    REASONING,
    REJECTED,
    REVIEW,
    VERDICT,
)
from mechdistill.data.token_spans import decode
from mechdistill.data.wording import Wording
from mechdistill.errors import InputError

PAD, BOS, EOS, UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
WORLD_ROLES: dict[str, str | None] = {
    "pad_token": PAD,
    "bos_token": BOS,
    "eos_token": EOS,
    "unk_token": UNKNOWN,
}
_OWN = "mechdistill"
"""Key of the file under which the roles and the chat template stand."""


def vocabulary(space: LabelSpace) -> list[str]:
    """All tokens in the order of their ids: specials, words, then the concepts of the space."""
    wording = space.wording
    sentence_words = [part for sentence in wording.sentences for part in sentence if len(part) > 1]
    words = [word for word in sentence_words if not word.isupper()]
    numbers = [f"#{index + 1}" for index in range(MAX_PROBLEMS)]
    phrases = [
        *(*wording.fillers, *wording.neutral_cues),
        *(*wording.found, *wording.came, *wording.sources),
    ]
    names = [region.name for region in space.regions]
    findings = [finding for region in space.regions for finding in region.evidence]
    cues = [label.cue for label in space.labels]
    texts = [label.text for label in space.labels]
    everything = [*_words(wording), *words, *numbers, *phrases, *names, *findings, *cues, *texts]
    return list(dict.fromkeys([PAD, BOS, EOS, UNKNOWN, *everything]))


def _words(wording: Wording) -> tuple[str, ...]:
    headings = (wording.start, wording.course, wording.absences, wording.remarks)
    return (
        *(".", ",", ";", "or", "since", wording.past, wording.absent, "is a kind of"),
        *(*headings, "Glossary:", CANDIDATES, LISTING, REASONING),
        *(OVERVIEW, REVIEW, ANSWER, VERDICT, REJECTED, *OPTIONS),
    )


def build_tokenizer(space: LabelSpace) -> PreTrainedTokenizerFast:
    """Tokenizer of a label space. `tokenizer(prompt)` puts <bos> first; nothing adds <eos>."""
    tokens = vocabulary(space)
    ids = {token: index for index, token in enumerate(tokens)}
    raw = Tokenizer(WordLevel(ids, unk_token=UNKNOWN))
    raw.pre_tokenizer = WhitespaceSplit()
    raw.add_special_tokens([PAD, BOS, EOS, UNKNOWN])
    concepts = [token for token in tokens if " " in token]
    raw.add_tokens([AddedToken(token, normalized=False, single_word=True) for token in concepts])
    raw.post_processor = TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, ids[BOS])])
    return _wrap(raw, WORLD_ROLES, None)


def save_tokenizer(path: str | Path, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write a tokenizer as one JSON file.

    Raises:
        InputError: it is a slow tokenizer (its tokens have no place in the text), or it has no
            token that ends a text.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"{type(tokenizer).__name__} is a slow tokenizer",
            "load it with AutoTokenizer, whose fast classes know where in a text a token stands",
        )
    roles = {role: getattr(tokenizer, role) for role in WORLD_ROLES}
    if roles["eos_token"] is None:
        raise InputError("the tokenizer has no token that ends a text", "set its eos_token")
    roles["pad_token"] = roles["pad_token"] or roles["eos_token"]
    with replacing(path) as temporary:
        if roles == WORLD_ROLES and tokenizer.chat_template is None:
            tokenizer.backend_tokenizer.save(str(temporary))
            return
        content = json.loads(tokenizer.backend_tokenizer.to_str())
        content[_OWN] = {"roles": roles, "chat_template": tokenizer.chat_template}
        temporary.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerFast:
    """Read a tokenizer written by `save_tokenizer`; InputError if it is missing or damaged."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        own = content.pop(_OWN, {"roles": WORLD_ROLES, "chat_template": None})
        return _wrap(Tokenizer.from_str(json.dumps(content)), **own)
    except Exception as error:  # tokenizers raises plain Exception
        raise InputError(
            f"{path} cannot be read as a tokenizer: {error}",
            how_to_make(path),
        ) from error


def encode_prompt(tokenizer: PreTrainedTokenizerFast, prompt: str) -> list[int]:
    """Token ids of a prompt, with what the tokenizer puts before a text; see `prompt_spans`."""
    return prompt_spans(tokenizer, prompt)[0]


def prompt_spans(
    tokenizer: PreTrainedTokenizerFast, prompt: str
) -> tuple[list[int], list[tuple[int, int]]]:
    """Token ids of a prompt and the [start, end) characters of each.

    The tokenizer's first token is not put before a prompt that spells it out already, as chat
    templates do. A token that is in no character of the prompt has an empty span.
    """
    encoded: Any = tokenizer.backend_tokenizer.encode(
        prompt, add_special_tokens=not spells_its_begin(tokenizer, prompt)
    )
    return list(encoded.ids), [(int(start), int(end)) for start, end in encoded.offsets]


def spells_its_begin(tokenizer: PreTrainedTokenizerFast, prompt: str) -> bool:
    """Whether a prompt spells out the tokenizer's first token."""
    return tokenizer.bos_token is not None and prompt.startswith(tokenizer.bos_token)


def encode_trace(tokenizer: PreTrainedTokenizerFast, text: str, prompt: str = "") -> list[int]:
    """Token ids of a whole trace that follows a prompt, the token that ends a text last.

    Where the prompt does not end in white space, the trace begins with a space.
    """
    space = " " if prompt and not prompt[-1].isspace() else ""
    ids: list[int] = tokenizer(space + text, add_special_tokens=False)["input_ids"]
    return [*ids, tokenizer.eos_token_id]


def decode_trace(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]) -> str:
    """Text of trace tokens without special tokens and surrounding space.

    Tokens of the world's own tokenizer are parted by single spaces.
    """
    return decode(tokenizer, ids, skip_special_tokens=True).strip()


def stop_ids(tokenizer: PreTrainedTokenizerFast, words: Sequence[str]) -> frozenset[int]:
    """Tokens that end a run: the end of the text, and those words that are one token each.

    A run is not stopped at a word of several tokens; it goes on, to be cut when it is parsed.
    """
    vocabulary = tokenizer.get_vocab()
    known = {vocabulary[word] for word in words if word in vocabulary}
    return frozenset({*known, tokenizer.eos_token_id})


def is_word_level(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether each word or concept is one token, as in the world's own tokenizer."""
    return isinstance(tokenizer.backend_tokenizer.model, WordLevel)


def _wrap(
    raw: Tokenizer, roles: dict[str, str | None], chat_template: str | None
) -> PreTrainedTokenizerFast:
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw, clean_up_tokenization_spaces=False, **roles
    )
    tokenizer.chat_template = chat_template
    return tokenizer
