from collections import Counter

import numpy as np
import pytest

from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import Role
from mechdistill.data.splits import SPLITS, split_of
from mechdistill.data.world import Case, WorldSettings, draw_case

Cases = list[tuple[str, str, Case]]


def texts(case: Case, role: Role) -> list[str]:
    return [piece.text for piece in case.pieces if piece.role == role]


def test_findings_and_cues_are_those_of_the_true_codes(cases: Cases, space: LabelSpace) -> None:
    for _, _, case in cases:
        told = [finding for problem in case.problems for finding in problem.evidence]
        assert sorted(texts(case, Role.EVIDENCE)) == sorted(told)
        for problem in case.problems:
            assert set(problem.evidence) <= set(space.region(problem.region).evidence)
            assert problem.cue == space.label(problem.gold).cue
            assert problem.near in space.siblings(problem.gold)
        assert texts(case, Role.CUE) == [problem.cue for problem in case.problems]


def test_pairs_hold_gold_and_near_miss_in_code_order(cases: Cases) -> None:
    for _, _, case in cases:
        assert all(first < second for first, second in case.pairs)
        for problem in case.problems:
            assert tuple(sorted((problem.gold, problem.near))) in case.pairs


def test_candidates_are_distinct_regions(cases: Cases, space: LabelSpace) -> None:
    for _, _, case in cases:
        regions = [space.region_of(pair[0]).code for pair in case.pairs]
        assert len(set(regions)) == len(regions) == 4


def test_distractors_name_no_true_region(cases: Cases, space: LabelSpace) -> None:
    for _, _, case in cases:
        true = [space.region(problem.region) for problem in case.problems]
        assert not set(texts(case, Role.HISTORY)) & {region.name for region in true}
        true_findings = {finding for region in true for finding in region.evidence}
        assert not set(texts(case, Role.NEGATED)) & true_findings


def test_a_decoy_always_stays_unmentioned(cases: Cases, space: LabelSpace) -> None:
    """Otherwise the true regions would be those of the list that history and absences leave out."""
    for _, _, case in cases:
        mentioned = set(texts(case, Role.HISTORY))
        absent = set(texts(case, Role.NEGATED))
        listed = {space.region_of(pair[0]) for pair in case.pairs}
        open_regions = {
            region.code
            for region in listed
            if region.name not in mentioned and absent.isdisjoint(region.evidence)
        }
        assert len(open_regions) > len(case.problems)


def test_combinations_occur_in_one_split_only(cases: Cases) -> None:
    splits: dict[frozenset[str], set[str]] = {}
    for _, split, case in cases:
        gold = frozenset(problem.gold for problem in case.problems)
        if len(gold) > 1:  # a single code is no combination
            splits.setdefault(gold, set()).add(split)
    assert len(splits) > 20
    assert all(len(found) == 1 for found in splits.values())


def test_never_gold_codes_are_gold_in_test_alone(
    space: LabelSpace, settings: WorldSettings
) -> None:
    rng = np.random.default_rng(0)
    golds = {
        split: {
            problem.gold
            for _ in range(300)
            for problem in draw_case(space, settings, split, rng).problems
        }
        for split in SPLITS
    }
    unseen = set(space.never_gold)
    assert unseen
    assert golds["test"] >= unseen
    assert all(golds[split].isdisjoint(unseen) for split in SPLITS if split != "test")


def test_split_shares_are_as_declared() -> None:
    counts = Counter(split_of([f"A{number}"], 7) for number in range(5000))
    assert counts["training"] / 5000 == pytest.approx(0.6, abs=0.03)
    assert set(counts) == set(SPLITS)


def test_same_generator_same_case(space: LabelSpace, settings: WorldSettings) -> None:
    first = draw_case(space, settings, "training", np.random.default_rng([1, 2]))
    second = draw_case(space, settings, "training", np.random.default_rng([1, 2]))
    assert first == second


def test_clauses_cite_the_cue_after_the_decision(cases: Cases) -> None:
    for _, _, case in cases:
        words = list(case.reference)
        for problem in case.problems:
            cited = words.index(problem.cue)
            assert words[cited - 1] == "since"
            assert "=>" in words[cited - 4 : cited]
