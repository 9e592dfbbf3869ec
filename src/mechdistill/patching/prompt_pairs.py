"""A clean and a corrupted prompt of one's own, and a decision behind both, as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mechdistill.data.places_in_text import check_seam
from mechdistill.data.token_spans import continuation_spans, decode
from mechdistill.data.tokenizer import encode_prompt
from mechdistill.errors import InputError
from mechdistill.patching.decision_sweep import ForcedPair


@dataclass(frozen=True)
class PromptPair:
    """A decision between next words, on a prompt and on its corrupted twin.

    Texts are put together as they are: begin what follows with a space where one belongs.

    Args:
        clean, corrupted: prompts of equally many tokens.
        target: what the model should say next, " acute" for example.
        foils: what it might say instead, one or several. The decision falls at the token at which
            they part from the target, which is the same token for all of them.
        continuation: text forced upon both prompts before the decision.
        name: of the example; None: its number.
    """

    clean: str
    corrupted: str
    target: str
    foils: str | Sequence[str]
    continuation: str = ""
    name: str | None = None


@dataclass(frozen=True)
class _Choice:
    query: int
    target: int
    foils: tuple[int, ...]


def forced_pair(pair: PromptPair, tokenizer: Any, name: str) -> ForcedPair:
    """The pair's tokens and its decision.

    Args:
        pair: the texts.
        tokenizer: a fast one.
        name: of the example, for messages.

    Raises:
        InputError: the prompts are equal, or of unequal numbers of tokens; there is no foil; the
            foils part from the target at no token or at different ones.
    """
    behind = pair.continuation + pair.target
    for prompt in (pair.clean, pair.corrupted):
        check_seam(prompt, behind, name)
    clean, corrupted = (tuple(encode_prompt(tokenizer, p)) for p in (pair.clean, pair.corrupted))
    _check_lengths(clean, corrupted, tokenizer, name)
    foils = [pair.foils] if isinstance(pair.foils, str) else list(pair.foils)
    if not foils or not all(text.strip() for text in (pair.target, *foils)):
        raise InputError(
            f"{name} has an empty target, or no foil, or an empty one",
            "give what the model should say, and at least one thing it might say instead",
        )
    if pair.continuation:
        check_seam(pair.continuation, pair.target, name)
    target, _ = continuation_spans(tokenizer, behind)
    others = [continuation_spans(tokenizer, pair.continuation + foil)[0] for foil in foils]
    at = _parting(target, dict(zip(foils, others, strict=True)), pair.target, name)
    rivals = tuple(dict.fromkeys(other[at] for other in others))
    choice = _Choice(len(clean) + at - 1, target[at], rivals)
    return ForcedPair(clean + target[:at], corrupted + target[:at], len(clean), [choice])


def _parting(target: Sequence[int], foils: dict[str, tuple[int, ...]], text: str, name: str) -> int:
    """Number of the token at which all foils part from the target."""
    found = {}
    for foil, ids in foils.items():
        places = [i for i, (a, b) in enumerate(zip(target, ids)) if a != b]
        if not places:
            raise InputError(
                f"{name}: target {text!r} and foil {foil!r} part at no token",
                "give two texts of which neither begins with the other; add what follows it",
            )
        found[foil] = places[0]
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{foil!r} at token {at + 1}" for foil, at in found.items())
        raise InputError(
            f"{name}: the foils part from {text!r} at different tokens ({listed})",
            "give a pair for each token, with the words that come before in its continuation",
        )
    return next(iter(found.values()))


def _check_lengths(
    clean: tuple[int, ...], corrupted: tuple[int, ...], tokenizer: Any, name: str
) -> None:
    if clean == corrupted:
        raise InputError(
            f"{name}: clean and corrupted prompt are the same tokens",
            "change the words in the corrupted one that the decision rests on",
        )
    if len(clean) == len(corrupted):
        return
    first, stop = _differing(clean, corrupted)
    parts = [ids[first : len(ids) - stop] for ids in (clean, corrupted)]
    shown = [
        f"{len(part)} ({' | '.join(decode(tokenizer, [token]) for token in part)})"
        for part in parts
    ]
    raise InputError(
        f"{name}: the clean prompt has {len(clean)} tokens, the corrupted one {len(corrupted)}; "
        f"from token {first + 1} on they differ in {shown[0]} against {shown[1]} tokens",
        "choose words of as many tokens: each position of one prompt is patched from the same "
        "position of the other",
    )


def _differing(first: Sequence[int], second: Sequence[int]) -> tuple[int, int]:
    """Numbers of equal tokens at the beginning, and at the end behind them."""
    shortest = min(len(first), len(second))
    start = next((i for i in range(shortest) if first[i] != second[i]), shortest)
    end = next((i for i in range(shortest - start) if first[-1 - i] != second[-1 - i]), None)
    return start, shortest - start if end is None else end
