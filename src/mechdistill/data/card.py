"""The data card: what the notes are, how they were made and how many there are, as Markdown."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.data.card_texts import WORLD_VERSION, CardText, card_text
from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.splits import SPLITS, TRAINING
from mechdistill.data.tokenizer import encode_prompt, encode_trace, is_word_level
from mechdistill.data.twins import TWINS, Twin

_WHOLE_WORDS = "One token stands for a whole concept, so wording carries no information."


def data_card(
    space: LabelSpace,
    tokenizer: PreTrainedTokenizerFast,
    examples: Sequence[Example],
    twins: Sequence[Twin],
    world: Mapping[str, Any],
    splits: Mapping[str, int],
    show_note: bool = True,
    listing: pd.DataFrame | None = None,
) -> str:
    """Markdown text; every number in it is counted from the arguments.

    Args:
        show_note: False leaves the first note out, as restricted data ask for.
        listing: of `mechdistill.data.candidates.list_all`, where lists are long.
    """
    shown = next(example for example in examples if example.split == SPLITS[0])
    text = card_text(space)
    sections = [
        text.title,
        text.nature,
        f"## Source\n\nWorld version {WORLD_VERSION}. {text.source.format(source=space.source)}",
        "## Parameters\n\n" + _table(("parameter", "value"), [*world.items(), *splits.items()]),
        "## Label space\n\n" + _label_space(space),
        *(["## Documents\n\n" + _documents(space, examples)] if space.documents else []),
        "## Notes\n\n" + _notes(space, tokenizer, examples) + "\n\n" + text.splits,
        *(["## Candidate lists\n\n" + _lists(listing)] if listing is not None else []),
        "## Twins\n\n" + _twins(twins, sum(example.split == "patching" for example in examples)),
        *([_one_note(shown)] if show_note else []),
        "## Known limits\n\n" + _limits(space, tokenizer, text),
    ]
    return "\n\n".join(sections) + "\n"


def _one_note(shown: Example) -> str:
    return (
        f"## One note\n\n```text\n{shown.prompt}\n```\n\nReference reasoning:\n\n"
        f"```text\n{shown.reference}\n```"
    )


def _label_space(space: LabelSpace) -> str:
    cues = Counter(label.cue for label in space.labels)
    shared = sum(count > 1 for count in cues.values())
    rows = [
        (
            f"{region.code} {region.name}",
            "; ".join(region.evidence),
            "; ".join(f"{code}: {space.label(code).cue}" for code in space.members(region.code)),
        )
        for region in space.regions
    ]
    unseen = ", ".join(space.never_gold) or "none"
    return (
        f"{len(space.regions)} regions (categories), {len(space.labels)} labels (leaf codes), "
        f"{len(cues)} distinct cues, {shared} of them used by more than one region. Never gold in "
        f"any training text, gold in test notes: {unseen}.\n\n"
        + _table(("region", "findings", "codes and cues"), rows)
    )


def _notes(
    space: LabelSpace, tokenizer: PreTrainedTokenizerFast, examples: Sequence[Example]
) -> str:
    rows = []
    for split in (name for name in SPLITS if any(e.split == name for e in examples)):
        chosen = [example for example in examples if example.split == split]
        prompts = [len(encode_prompt(tokenizer, example.prompt)) for example in chosen]
        traces = [
            len(encode_trace(tokenizer, example.reference, example.prompt)) for example in chosen
        ]
        sizes = Counter(len(example.gold) for example in chosen)
        unseen = sum(code in space.never_gold for example in chosen for code in example.gold)
        rows.append(
            (
                split,
                len(chosen),
                ", ".join(f"{sizes[size]} x {size}" for size in sorted(sizes)),
                len({code for example in chosen for code in example.gold}),
                unseen,
                f"{np.mean(prompts):.1f} ({max(prompts)})",
                f"{np.mean(traces):.1f} ({max(traces)})",
            )
        )
    header = (
        "split",
        "notes",
        "notes x problems",
        "distinct gold codes",
        "unseen gold codes",
        "prompt tokens, mean (most)",
        "reference tokens, mean (most)",
    )
    return _table(header, rows)


def _documents(space: LabelSpace, examples: Sequence[Example]) -> str:
    """Sizes of the graph, and what a list of candidates tells whoever knows what is often true."""
    often = Counter(code for document in space.documents for code in document.related)
    counts = sorted(often[label.code] for label in space.labels)
    pairs, filtered = sum(counts), sum(len(x.filtered) for x in space.documents)
    true = Counter(code for x in examples if x.split == TRAINING for code in x.gold)
    codes = [
        (true[gold], true[near])
        for example in examples
        if example.split != TRAINING
        for gold, near in zip(example.gold, example.near, strict=True)
    ]
    told = np.mean([(gold > near) + (gold == near) / 2 for gold, near in codes])
    return (
        f"{len(space.documents)} documents relate to a label, in {pairs} pairs: "
        f"{pairs / len(space.documents):.2f} labels a document, {pairs / len(counts):.1f} "
        f"documents a label (fewest {counts[0]}, median {np.median(counts):g}, most {counts[-1]}). "
        f"{filtered} further pairs are filter rows: document and label relate to each other, which "
        "counts neither as true nor as false, so that they are in no candidate list of the "
        "document. Labels differ in how often they are true: whoever takes of each pair the code "
        f"that is gold more often in training notes is right in {100 * told:.0f} % of "
        f"{len(codes)} pairs of the other notes (chance: 50 %)."
    )


def _lists(listing: pd.DataFrame) -> str:
    """Sizes of the lists, and the share of true codes that the retriever puts on them."""
    rows = []
    for split in (name for name in SPLITS if (listing["split"] == name).any()):
        own = listing[listing["split"] == split]
        found, true = int(own["retrieved"].sum()), int(own["gold"].sum())
        whole = int((own["retrieved"] == own["gold"]).sum())
        sizes = f"{own['listed'].mean():.1f} ({own['listed'].min()} to {own['listed'].max()})"
        rows.append((split, len(own), sizes, f"{found / true:.3f}", f"{whole} of {len(own)}"))
    number = listing["number"].iloc[0]
    header = (
        *("split", "notes", "labels of a list, mean (range)", f"recall at {number}"),
        "notes with all true codes retrieved",
    )
    picked = (
        "All labels are listed, in one order in all prompts."
        if number == "all"
        else f"BM25 over descriptions, region names and findings picks {number} labels for each "
        "note, at least two of a region. True codes that are not retrieved are put on the list "
        "where candidates.force_gold is true; where it is not, they are not listed, and an answer "
        "cannot but miss them."
    )
    return f"{picked}\n\n" + _table(header, rows)


def _twins(twins: Sequence[Twin], notes: int) -> str:
    what = {
        "K0": "indifferent words replaced by others of their kind",
        "K1": "findings and cues of the true codes replaced by neutral phrases",
        "K2": "each cue replaced by that of the near-miss",
    }
    rows = []
    for name in TWINS:
        changed = [twin.n_tokens_changed for twin in twins if twin.twin == name]
        mean = f"{np.mean(changed):.1f}" if changed else "-"
        rows.append((name, what[name], len(changed), notes - len(changed), mean))
    header = ("twin", "change", "prompts", "patching notes without one", "tokens changed, mean")
    return _table(header, rows) + (
        "\n\nTwins have as many tokens as their originals (checked when they are made). A note has "
        "no twin where no replacement has the length of what it replaces."
    )


def _limits(space: LabelSpace, tokenizer: PreTrainedTokenizerFast, text: CardText) -> str:
    first, *others = [
        limit.format(never_gold=len(space.never_gold), labels=len(space.labels))
        for limit in text.limits
    ]
    words = [_WHOLE_WORDS] if is_word_level(tokenizer) else []
    return "\n".join(f"- {limit}" for limit in (first, *words, *others))


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
