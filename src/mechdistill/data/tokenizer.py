"""Word-level tokenizer of the world: one token a word or concept, longest match first."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from mechdistill.artifacts import replacing
from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import (
    CAME,
    FILLERS,
    FOUND,
    MAX_PROBLEMS,
    NEUTRAL_CUES,
    SENTENCES,
    SOURCES,
)
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
from mechdistill.errors import InputError

PAD, BOS, EOS, UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
_WORDS = (
    *(".", ",", ";", "or", "since", "past", "no", "is a kind of"),
    *("History:", "Course:", "Absent:", "General:", "Glossary:", CANDIDATES, LISTING, REASONING),
    *(OVERVIEW, REVIEW, ANSWER, VERDICT, REJECTED, *OPTIONS),
)


def vocabulary(space: LabelSpace) -> list[str]:
    """All tokens in the order of their ids: specials, words, then the concepts of the space."""
    sentence_words = [part for sentence in SENTENCES for part in sentence if len(part) > 1]
    words = [word for word in sentence_words if not word.isupper()]
    numbers = [f"#{index + 1}" for index in range(MAX_PROBLEMS)]
    phrases = [*FILLERS, *NEUTRAL_CUES, *FOUND, *CAME, *SOURCES]
    names = [region.name for region in space.regions]
    findings = [finding for region in space.regions for finding in region.evidence]
    cues = [label.cue for label in space.labels]
    texts = [label.text for label in space.labels]
    everything = [*_WORDS, *words, *numbers, *phrases, *names, *findings, *cues, *texts]
    return list(dict.fromkeys([PAD, BOS, EOS, UNKNOWN, *everything]))


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
    return _wrap(raw)


def save_tokenizer(path: str | Path, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write the tokenizer as one JSON file."""
    with replacing(path) as temporary:
        tokenizer.backend_tokenizer.save(str(temporary))


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerFast:
    """Read a tokenizer written by `save_tokenizer`; InputError if it is missing or damaged."""
    try:
        return _wrap(Tokenizer.from_file(str(path)))
    except Exception as error:  # tokenizers raises plain Exception
        raise InputError(
            f"{path} cannot be read as a tokenizer: {error}",
            f"delete it and make it again: rm {path} && snakemake --cores 2 {path}",
        ) from error


def encode_prompt(tokenizer: PreTrainedTokenizerFast, prompt: str) -> list[int]:
    """Token ids of a prompt, <bos> first."""
    ids: list[int] = tokenizer(prompt, add_special_tokens=True)["input_ids"]
    return ids


def encode_trace(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """Token ids of a whole trace that follows a prompt, <eos> last."""
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return [*ids, tokenizer.eos_token_id]


def decode_trace(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]) -> str:
    """Text of trace tokens, specials left out; tokens are parted by single spaces."""
    return str(tokenizer.decode(list(ids), skip_special_tokens=True))


def _wrap(raw: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
    )
