"""Texts without reasoning: what a base student has read before it is distilled."""

import numpy as np

from mechdistill.data.labels import LabelSpace
from mechdistill.data.world import WorldSettings, draw_case, draw_listing

GLOSSARY_SHARE = 0.25
LISTING_SHARE = 0.25
GLOSSARY_ENTRIES = 8


def base_texts(
    space: LabelSpace, settings: WorldSettings, count: int, rng: np.random.Generator
) -> list[str]:
    """Notes with candidates up to "Reasoning:", glossary entries and listings, in random order.

    Notes hold training combinations only; glossary entries and listings tell what a code is called
    and read lists out, never what is gold.
    """
    return [_base_text(space, settings, rng) for _ in range(count)]


def _base_text(space: LabelSpace, settings: WorldSettings, rng: np.random.Generator) -> str:
    kind = rng.random()
    if kind < GLOSSARY_SHARE:
        return glossary_text(space, rng)
    if kind < GLOSSARY_SHARE + LISTING_SHARE:
        prompt, listing = draw_listing(space, settings, rng)
        return " ".join([*prompt, *listing])
    return draw_case(space, settings, "training", rng).prompt


def glossary_text(space: LabelSpace, rng: np.random.Generator) -> str:
    """`Glossary: I50.21 acute heart failure is a kind of heart failure , acute .`, some entries."""
    entries = rng.choice(len(space.labels), min(GLOSSARY_ENTRIES, len(space.labels)), replace=False)
    words = ["Glossary:"]
    for index in entries:
        label = space.labels[index]
        name = space.region(label.region).name
        words += [label.text, "is a kind of", name, ",", label.cue, "."]
    return " ".join(words)
