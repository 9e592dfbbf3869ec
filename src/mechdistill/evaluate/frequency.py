"""Labels by how many training documents have them as gold: head, torso and tail.

Labels are ordered by that number. The head begins with the most frequent and the torso with the
label at one third of the order, the tail with that at two thirds; labels of one frequency are never
parted but belong to the more frequent group, so that chance and names decide nothing. Where all
are equally frequent there is a head alone. Labels that no training document has are in the tail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

GROUPS = ("head", "torso", "tail")


def training_uses(
    training_gold: Sequence[Collection[str]], labels: Sequence[str]
) -> dict[str, int]:
    """N_l, training documents with label l as gold, of every label of the space."""
    uses = dict.fromkeys(labels, 0)
    for gold in training_gold:
        for label in gold:
            uses[label] += 1
    return uses


def frequency_groups(uses: Mapping[str, int]) -> dict[str, npt.NDArray[np.bool_]]:
    """Masks [labels] of the three groups, in the order of `uses`; together they cover all.

    >>> {g: m.tolist() for g, m in frequency_groups({"a": 9, "b": 1, "c": 4}).items()}
    {'head': [True, False, False], 'torso': [False, False, True], 'tail': [False, True, False]}
    """
    counts = np.array(list(uses.values()))
    falling = np.sort(counts)[::-1]
    last_of = [falling[-(-len(counts) * part // 3) - 1] for part in (1, 2)]
    head = (counts >= last_of[0]) & (counts > 0)
    torso = (counts >= last_of[1]) & (counts > 0) & ~head
    return {"head": head, "torso": torso, "tail": ~head & ~torso}


def group_sizes(
    uses: Mapping[str, int], gold: Iterable[Collection[str]]
) -> dict[str, dict[str, int]]:
    """Of each group: labels, how many are gold in the evaluated split, least and most N_l."""
    present = set().union(*gold)
    found = {}
    for group, among in frequency_groups(uses).items():
        own = [label for label, is_own in zip(uses, among, strict=True) if is_own]
        found[group] = {
            "labels": len(own),
            "gold_in_test": len(present.intersection(own)),
            "least_training_notes": min((uses[label] for label in own), default=0),
            "most_training_notes": max((uses[label] for label in own), default=0),
        }
    return found
