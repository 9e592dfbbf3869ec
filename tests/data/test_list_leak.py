"""Neither the candidate list nor history and absences tell regions or codes, statistically.

A predictor that sees the list alone must be at chance. Predictors are fitted on one half of the
notes and judged on the other; bounds are those of the binomial at four standard errors.
"""

from collections import Counter, defaultdict

import numpy as np
import pytest

from mechdistill.data.labels import LabelSpace
from mechdistill.data.prompts import pair_of
from mechdistill.data.world import Case, WorldSettings, draw_case

NOTES = 1500


@pytest.fixture(scope="module")
def one_problem(space: LabelSpace) -> list[Case]:
    settings = WorldSettings(seed=7, groups_in_context=4, problems_min=1, problems_max=1)
    rng = np.random.default_rng(11)
    return [draw_case(space, settings, "training", rng) for _ in range(NOTES)]


def four_errors(chance: float, count: int) -> float:
    return float(chance + 4 * np.sqrt(chance * (1 - chance) / count))


def test_place_in_the_list_does_not_tell_the_true_region(one_problem: list[Case]) -> None:
    places = [
        [pair[0][:3] for pair in case.pairs].index(case.problems[0].region) for case in one_problem
    ]
    most = max(Counter(places).values()) / len(places)
    assert most < four_errors(0.25, len(places))


def test_option_letter_is_balanced(one_problem: list[Case]) -> None:
    first = np.mean([case.problems[0].gold < case.problems[0].near for case in one_problem])
    assert abs(first - 0.5) < four_errors(0.5, len(one_problem)) - 0.5 + 0.05


def test_the_groups_shown_do_not_tell_the_true_one(one_problem: list[Case]) -> None:
    """Score each group by how often its pair, and its codes, were true in the fitting half."""
    half = len(one_problem) // 2
    true: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for case in one_problem[:half]:
        for pair in case.pairs:
            region = pair[0].split(".")[0]
            hit = region == case.problems[0].region
            for key in (region, *pair, "+".join(pair)):
                shown[key] += 1
                true[key] += hit
    hits = []
    for case in one_problem[half:]:
        scores = []
        for pair in case.pairs:
            keys = (pair[0].split(".")[0], *pair, "+".join(pair))
            scores.append(np.mean([(true[key] + 1) / (shown[key] + 4) for key in keys]))
        guess = case.pairs[int(np.argmax(scores))][0].split(".")[0]
        hits.append(guess == case.problems[0].region)
    assert np.mean(hits) < four_errors(0.25, len(hits))


def test_the_pair_does_not_tell_the_true_code(one_problem: list[Case], space: LabelSpace) -> None:
    """Pairs with a never-gold code are left out: in training texts they do tell (data card)."""
    votes: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    half = len(one_problem) // 2
    true = [(pair_of(case.problems[0]), case.problems[0].gold) for case in one_problem]
    usable = [(pair, gold) for pair, gold in true if set(pair).isdisjoint(space.never_gold)]
    for pair, gold in usable[:half]:
        votes[pair][gold] += 1
    hits = [votes[pair].most_common(1)[0][0] == gold for pair, gold in usable[half:] if votes[pair]]
    assert len(hits) > 300
    assert np.mean(hits) < four_errors(0.5, len(hits))


def test_history_and_absences_leave_several_regions_open(
    space: LabelSpace, settings: WorldSettings
) -> None:
    """A guess among the unmentioned regions of the list is right in under three of four notes."""
    rng = np.random.default_rng(3)
    chances = []
    for _ in range(400):
        case = draw_case(space, settings, "training", rng)
        words = [piece.text for piece in case.pieces]
        note = set(words[: words.index("Candidates:")])
        listed = [space.region_of(pair[0]) for pair in case.pairs]
        true = {problem.region for problem in case.problems}
        hidden = {f for region in listed if region.code in true for f in region.evidence}
        unmentioned = [
            region for region in listed if not (note - hidden) & {region.name, *region.evidence}
        ]
        chances.append(len(true) / len(unmentioned))
    assert np.mean(chances) < 0.75
