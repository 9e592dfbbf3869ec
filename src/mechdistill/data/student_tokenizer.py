"""A sub-word tokenizer trained on notes: that of students which do not share the teacher's."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from mechdistill.data.tokenizer import BOS, EOS, PAD

TEXTS = 2000
"""Notes and glossary entries that it is trained on; more change no merge that matters."""
SMALLEST = 256 + 3
"""Bytes and special tokens: a vocabulary without a merge."""


def train_byte_level_bpe(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE, as GPT-2's: any text survives it. It puts <bos> before a text.

    The same texts give the same tokenizer.

    Args:
        texts: what the merges are counted on.
        vocabulary: tokens at most, special ones and the 256 bytes included.
    """
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, BOS, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    raw.post_processor = TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, raw.token_to_id(BOS))]
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        clean_up_tokenization_spaces=False,
    )
