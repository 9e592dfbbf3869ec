"""Texts without reasoning: what a base student has read before it is distilled."""

import numpy as np

from mechdistill.data.labels import LabelSpace
from mechdistill.data.world import WorldSettings, draw_case

GLOSSARY_SHARE = 0.25
GLOSSARY_ENTRIES = 8


def base_texts(
    space: LabelSpace, settings: WorldSettings, count: int, rng: np.random.Generator
) -> list[str]:
    """Notes with their candidates up to "Reasoning:", and glossary entries, in random order.

    Notes hold training combinations only; glossary entries tell what a code is called, never when
    it is gold.
    """
    return [
        glossary_text(space, rng)
        if rng.random() < GLOSSARY_SHARE
        else draw_case(space, settings, "training", rng).prompt
        for _ in range(count)
    ]


def glossary_text(space: LabelSpace, rng: np.random.Generator) -> str:
    """`Glossary: I50.21 acute heart failure is a kind of heart failure , acute .`, some entries."""
    entries = rng.choice(len(space.labels), min(GLOSSARY_ENTRIES, len(space.labels)), replace=False)
    words = ["Glossary:"]
    for index in entries:
        label = space.labels[index]
        name = space.region(label.region).name
        words += [label.text, "is a kind of", name, ",", label.cue, "."]
    return " ".join(words)
