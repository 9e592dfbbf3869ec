from collections import Counter
from pathlib import Path

import pytest
import simple_icd_10_cm as icd

from mechdistill.data.icd_regions import REGION_SOURCES
from mechdistill.data.labels import (
    LabelSpace,
    build_label_space,
    read_label_space,
    write_label_space,
)
from mechdistill.errors import InputError


@pytest.fixture(scope="module")
def large() -> LabelSpace:
    return build_label_space(
        seed=7, regions=24, labels_per_region=6, evidence_per_region=4, never_gold=8
    )


def test_labels_are_leaves_of_their_category(large: LabelSpace) -> None:
    for label in large.labels:
        assert icd.is_leaf(label.code)
        assert label.region in icd.get_ancestors(label.code)
        assert label.text.startswith(label.code)
        assert large.region_of(label.code).name in label.text
        assert label.description.split() == icd.get_description(label.code).split()


def test_counts_are_those_asked_for(large: LabelSpace) -> None:
    assert len(large.regions) == 24
    assert Counter(label.region for label in large.labels) == {r.code: 6 for r in large.regions}
    assert {len(region.evidence) for region in large.regions} == {4}
    assert len(large.never_gold) == 8
    assert len({large.label(code).region for code in large.never_gold}) == 8


def test_a_cue_tells_siblings_apart(large: LabelSpace) -> None:
    for region in large.regions:
        cues = [large.label(code).cue for code in large.members(region.code)]
        assert len(set(cues)) == len(cues)


def test_findings_are_unique_and_name_no_region(large: LabelSpace) -> None:
    findings = [finding for region in large.regions for finding in region.evidence]
    assert len(set(findings)) == len(findings)
    names = {region.name for region in large.regions}
    assert names.isdisjoint(findings)
    assert {label.cue for label in large.labels}.isdisjoint(findings)


def test_some_findings_are_inclusion_terms(large: LabelSpace) -> None:
    written = {finding for source in REGION_SOURCES for finding in source.findings}
    mined = [f for region in large.regions for f in region.evidence if f not in written]
    assert mined
    for region in large.regions:
        terms = " ".join(
            term.lower()
            for code in [region.code, *icd.get_descendants(region.code)]
            for term in icd.get_inclusion_term(code)
        )
        assert all(finding in terms for finding in region.evidence if finding in mined)


def test_siblings_share_the_region_and_leave_the_code_out(large: LabelSpace) -> None:
    code = large.labels[0].code
    siblings = large.siblings(code)
    assert len(siblings) == 5
    assert code not in siblings
    assert {large.region_of(sibling) for sibling in siblings} == {large.region_of(code)}


def test_same_seed_same_space_and_another_seed_another(large: LabelSpace) -> None:
    assert build_label_space(7, 24, 6, 4, 8) == large
    assert build_label_space(8, 24, 6, 4, 8) != large


def test_space_survives_the_file(large: LabelSpace, tmp_path: Path) -> None:
    write_label_space(tmp_path / "space.json", large)
    assert read_label_space(tmp_path / "space.json") == large


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        ((999, 6, 4, 8), "data.world"),
        ((24, 99, 4, 8), "data.world"),
        ((24, 6, 40, 8), "evidence_per_region"),
        ((24, 6, 4, 25), "never_gold"),
    ],
)
def test_impossible_sizes_are_named(sizes: tuple[int, int, int, int], named: str) -> None:
    with pytest.raises(InputError, match=named):
        build_label_space(7, *sizes)


def test_a_file_of_another_shape_is_refused(tmp_path: Path) -> None:
    from mechdistill.artifacts import write_json

    write_json(tmp_path / "space.json", {"regions": []})
    with pytest.raises(InputError, match="label space"):
        read_label_space(tmp_path / "space.json")
