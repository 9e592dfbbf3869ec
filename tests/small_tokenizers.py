"""Small sub-word tokenizers, trained in the tests: byte-level, and with byte fallback."""

import json
from collections.abc import Iterable

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

BEGIN, END = "<|begin|>", "<|end|>"
CHAT = (
    "{% for m in messages %}<|begin|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|begin|>assistant\n{% endif %}"
)


def byte_level(
    texts: Iterable[str], *, size: int = 420, adds_begin: bool = False
) -> PreTrainedTokenizerFast:
    """As GPT-2's: any text survives; padding is the end token; with a chat template.

    Args:
        size: of the vocabulary; small, so that labels are cut into many pieces.
        adds_begin: whether the tokenizer puts its first token before a text by itself.
    """
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[BEGIN, END], initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator(texts, trainer)
    if adds_begin:
        first = (BEGIN, raw.token_to_id(BEGIN))
        raw.post_processor = TemplateProcessing(single=f"{BEGIN} $A", special_tokens=[first])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token=BEGIN, eos_token=END, pad_token=END
    )
    tokenizer.chat_template = CHAT
    return tokenizer


def byte_fallback(texts: Iterable[str], *, size: int = 400) -> PreTrainedTokenizerFast:
    """As Gemma's: words begin with a mark; unknown characters become tokens of one byte each."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "▁")
    trained.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")  # no piece of two words
    trained.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    pieces = ["<unk>", BEGIN, END, *(f"<0x{byte:02X}>" for byte in range(256)), *model["vocab"]]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    merges = [tuple(merge) for merge in model["merges"]]
    raw = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    raw.normalizer = normalizers.Replace(" ", "▁")
    raw.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    raw.add_special_tokens([AddedToken(token, special=True) for token in ("<unk>", BEGIN, END)])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="<unk>", bos_token=BEGIN, eos_token=END, pad_token=END
    )


def unigram(texts: Iterable[str], *, size: int = 200) -> PreTrainedTokenizerFast:
    """As SentencePiece's: a mark before every word, the first one too; unknown ones in bytes."""
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator(
        texts, trainers.UnigramTrainer(vocab_size=size, show_progress=False, unk_token="<unk>")
    )
    pieces = [
        piece for piece in json.loads(trained.to_str())["model"]["vocab"] if piece[0][0] != "<"
    ]
    vocabulary = [
        *(("<unk>", 0.0), (BEGIN, 0.0), (END, 0.0)),
        *((f"<0x{byte:02X}>", -20.0) for byte in range(256)),
        *((str(piece), float(score)) for piece, score in pieces),
    ]
    raw = Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=True))
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1),
        ]
    )
    raw.add_special_tokens([AddedToken(token, special=True) for token in ("<unk>", BEGIN, END)])
    raw.post_processor = TemplateProcessing(single=f"{BEGIN} $A", special_tokens=[(BEGIN, 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="<unk>", bos_token=BEGIN, eos_token=END, pad_token=END
    )


def normalising(tokenizer: PreTrainedTokenizerFast, form: str) -> PreTrainedTokenizerFast:
    """A copy that brings a text into a Unicode normal form ("NFC", "NFD", "NFKC") first."""
    raw = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    raw.normalizer = getattr(normalizers, form)()
    roles = {role: getattr(tokenizer, role) for role in ("bos_token", "eos_token", "pad_token")}
    return PreTrainedTokenizerFast(tokenizer_object=raw, **roles)
