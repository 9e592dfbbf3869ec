"""Claims of version 2 on tables with a planted truth."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mechdistill.report.claims import decisions, judge_all
from mechdistill.report.evidence import NotTested
from mechdistill.report.verdicts import Verdict

NOTES = [f"n{i:02d}" for i in range(40)]
KINDS = ("region", "within", "departure")


def noise(scale=0.1):
    return np.random.default_rng(0).normal(0, scale, len(NOTES))


def events(margin=3.0, kinds=KINDS, scale=0.1):
    frames = [
        pd.DataFrame(
            {"example": NOTES, "segment": "reasoning", "kind": kind, "repeat": 0}
            | {"margin": margin + noise(scale=scale)}
        )
        for kind in kinds
    ]
    copied = frames[0].assign(repeat=1, margin=-100.0)  # decides nothing
    return pd.concat([*frames, copied])


class TestEvents:
    @pytest.mark.parametrize(
        ("margin", "verdict"),
        [(3.0, Verdict.HOLDS), (-3.0, Verdict.DOES_NOT_HOLD), (0.0, Verdict.NO_DIFFERENCE)],
    )
    def test_the_margin_decides(self, build, margin, verdict):
        evidence = build.evidence(events=events(margin))
        assert decisions.decisions_are_events(evidence).decided is verdict

    def test_undecided_without_one_of_the_kinds(self, build):
        outcome = decisions.decisions_are_events(build.evidence(events=events(kinds=KINDS[:2])))
        assert outcome.decided is Verdict.UNDECIDED
        assert "of the kind departure" in outcome.note

    def test_not_tested_without_events(self, build):
        with pytest.raises(NotTested, match="decision events"):
            decisions.decisions_are_events(build.evidence())


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ((0.5, 0.7), Verdict.HOLDS),
        ((-0.7, -0.5), Verdict.DOES_NOT_HOLD),
        ((-0.2, 0.2), Verdict.NO_DIFFERENCE),
        ((np.nan, np.nan), Verdict.UNDECIDED),
    ],
)
def test_attribution_is_judged_at_every_kind_of_decision(build, ends, verdict):
    def row(kind, low, high):
        spearman = (low + high) / 2
        return (kind, "reasoning", spearman, low, high, 0.8, 40)

    columns = ["kind", "segment", "spearman", "ci_low", "ci_high", "captured", "n"]
    table = pd.DataFrame([row("region", 0.8, 0.9), row("within", *ends)], columns=columns)
    outcome = decisions.attribution_ranks_as_ablation(build.evidence(attribution=table))
    assert outcome.decided is verdict
    assert "at least 80 %" in outcome.note


class TestKnockIn:
    """All heads of the donor move the margin from -4 to 4."""

    def frame(self, size, *, top=4.0, by_random=0.5, null=0.2):
        rows = [
            ("region", "reasoning", name, ranking, size, draw, note, donor, -4.0, 4.0, patched)
            for name, ranking, moved in (
                ("", "top", top),
                ("", "random", by_random),
                ("same_way", "top", null),
            )
            for draw in range(2 if ranking == "random" else 1)
            for note, jitter in zip(NOTES, noise())
            for donor in ("d1", "d2")
            for patched in [-4.0 + moved + jitter * (draw + (1 if name else 2))]
        ]
        columns = ["kind", "segment", "null", "ranking", "bin", "draw", "example", "donor"]
        return pd.DataFrame(rows, columns=[*columns, "start", "end", "patched"])

    def outcome(self, build, size=None, **options):
        frame = self.frame(size or build.design.few_heads, **options)
        return decisions.knock_in_carries_the_decision(build.evidence(knock_in=frame))

    def test_holds_where_the_donor_moves_the_margin_more_than_both_controls(self, build):
        outcome = self.outcome(build)
        assert outcome.decided is Verdict.HOLDS
        effects = [part.estimate.effect for part in outcome.parts]
        assert effects == pytest.approx([3.5, 3.8], abs=0.1)
        assert "region decisions in the reasoning: 50 %" in outcome.note

    @pytest.mark.parametrize("control", ["by_random", "null"])
    def test_fails_where_a_control_moves_it_more(self, build, control):
        assert self.outcome(build, **{control: 6.0}).decided is Verdict.DOES_NOT_HOLD
        assert self.outcome(build, **{control: 4.0}).decided is Verdict.NO_DIFFERENCE

    def test_undecided_with_a_single_recipient(self, build):
        frame = self.frame(build.design.few_heads).query("example == 'n00'")
        outcome = decisions.knock_in_carries_the_decision(build.evidence(knock_in=frame))
        assert outcome.decided is Verdict.UNDECIDED

    def test_not_tested_without_small_sets_or_controls(self, build):
        with pytest.raises(NotTested, match="a quarter"):
            self.outcome(build, size=build.design.few_heads + 1)
        alone = self.frame(build.design.few_heads).query("ranking == 'top' and null == ''")
        with pytest.raises(NotTested, match="no controls"):
            decisions.knock_in_carries_the_decision(build.evidence(knock_in=alone))
        with pytest.raises(NotTested, match="another note's context"):
            decisions.knock_in_carries_the_decision(build.evidence())


class TestNulls:
    """Two heads move region decisions, a third nothing."""

    def tables(self, at_other_tokens, above=(True, False), low=0.5):
        heads = [(0, 0), (0, 1), (1, 0)]
        effects = pd.DataFrame(
            [
                ("region", "reasoning", *head, bound, counts)
                for head, bound, counts in zip(heads, (low, low, -0.1), (*above, False))
            ],
            columns=["kind", "segment", "layer", "head", "ci_low", "above_null"],
        )
        rows = [
            ("region", "reasoning", note, *head, null, effect + jitter)
            for (note, jitter), head in itertools.product(zip(NOTES, noise()), heads)
            for null, effect in (
                ("", 2.0),
                ("other_token", -50.0 if head == heads[2] else at_other_tokens),
            )
        ]
        columns = ["kind", "segment", "example", "layer", "head", "null", "effect"]
        return {"head_effects": effects, "ablation": pd.DataFrame(rows, columns=columns)}

    @pytest.mark.parametrize(
        ("at_other_tokens", "verdict"),
        [(1.0, Verdict.HOLDS), (-1.0, Verdict.DOES_NOT_HOLD), (0.0, Verdict.NO_DIFFERENCE)],
    )
    def test_heads_with_an_effect_are_read_at_other_tokens(self, build, at_other_tokens, verdict):
        outcome = decisions.nulls_discount_generic_heads(
            build.evidence(**self.tables(at_other_tokens))
        )
        assert outcome.decided is verdict
        assert outcome.parts[0].estimate.effect == pytest.approx(at_other_tokens, abs=0.05)
        assert "region, reasoning: 1 of 2" in outcome.note

    def test_fails_where_no_head_is_discounted(self, build):
        evidence = build.evidence(**self.tables(1.0, above=(True, True)))
        assert decisions.nulls_discount_generic_heads(evidence).decided is Verdict.DOES_NOT_HOLD

    def test_undecided_on_a_single_note(self, build):
        tables = self.tables(1.0)
        tables["ablation"] = tables["ablation"].query("example == 'n00'")
        outcome = decisions.nulls_discount_generic_heads(build.evidence(**tables))
        assert outcome.decided is Verdict.UNDECIDED

    def test_not_tested_without_a_head_that_moves_anything(self, build):
        with pytest.raises(NotTested, match="no head has an effect"):
            decisions.nulls_discount_generic_heads(build.evidence(**self.tables(1.0, low=-0.5)))
        with pytest.raises(NotTested, match="single heads"):
            decisions.nulls_discount_generic_heads(build.evidence())


class TestSets:
    """All heads together take the margin from 10 to 2."""

    def frame(self, size, *, taken=6.0, given=6.0, by_random=1.0, spared=0):
        rows = [
            ("region", "reasoning", mode, ranking, size, draw, note, 10.0, 2.0, start + sign * done)
            for mode, start, sign, top in (("ablated", 10.0, -1, taken), ("kept", 2.0, 1, given))
            for ranking, own in (("top", top), ("random", by_random))
            for draw in range(1 if ranking == "top" else 2)
            for (i, note), jitter in zip(enumerate(NOTES), noise())
            for done in [0.0 if ranking == "top" and i < spared else own + jitter * (draw + 1)]
        ]
        columns = ["kind", "segment", "mode", "ranking", "bin", "draw", "example"]
        return pd.DataFrame(rows, columns=[*columns, "margin", "floor", "patched"])

    def outcome(self, build, size=None, **options):
        frame = self.frame(size or build.design.few_heads, **options)
        return decisions.small_set_is_necessary_and_sufficient(build.evidence(head_sets=frame))

    def test_holds_where_it_takes_and_gives_more_than_random_heads(self, build):
        outcome = self.outcome(build)
        assert outcome.decided is Verdict.HOLDS
        assert outcome.parts[0].estimate.effect == pytest.approx(5.0, abs=0.1)
        assert "ablated: 75 %" in outcome.note

    @pytest.mark.parametrize("side", ["taken", "given"])
    def test_needs_both_sides(self, build, side):
        assert self.outcome(build, **{side: 0.2}).decided is Verdict.DOES_NOT_HOLD
        assert self.outcome(build, **{side: 1.0}).decided is not Verdict.HOLDS

    def test_fails_where_a_third_of_the_notes_is_spared(self, build):
        outcome = self.outcome(build, spared=13)
        assert outcome.decided is Verdict.DOES_NOT_HOLD
        assert outcome.parts[0].verdict is Verdict.HOLDS
        share = outcome.parts[1].estimate
        low, high = stats.beta.ppf(0.025, 27, 14), stats.beta.ppf(0.975, 28, 13)
        assert (share.low + 0.9, share.high + 0.9) == pytest.approx((low, high))

    def test_undecided_on_a_single_note(self, build):
        frame = self.frame(build.design.few_heads).query("example == 'n00'")
        outcome = decisions.small_set_is_necessary_and_sufficient(build.evidence(head_sets=frame))
        assert outcome.decided is Verdict.UNDECIDED

    def test_not_tested_on_large_sets_or_without_random_heads(self, build):
        with pytest.raises(NotTested, match="a quarter"):
            self.outcome(build, size=build.design.few_heads + 1)
        frame = self.frame(build.design.few_heads).query("ranking == 'top'")
        with pytest.raises(NotTested, match="random"):
            decisions.small_set_is_necessary_and_sufficient(build.evidence(head_sets=frame))


class TestPhases:
    """12 of 40 heads count at region decisions, 12 within a region."""

    def evidence(self, build, shared, size=12):
        heads = [(layer, head) for layer in range(5) for head in range(8)]
        counted = {"region": heads[:size], "within": heads[size - shared : 2 * size - shared]}
        rows = [
            (kind, "reasoning", *head, 0.0, head in own)
            for kind, own in counted.items()
            for head in heads
        ]
        columns = ["kind", "segment", "layer", "head", "ci_low", "above_null"]
        return build.evidence(head_effects=pd.DataFrame(rows, columns=columns))

    @pytest.mark.parametrize(
        ("shared", "verdict"),
        [(0, Verdict.HOLDS), (12, Verdict.DOES_NOT_HOLD), (4, Verdict.NO_DIFFERENCE)],
    )
    def test_shared_heads_are_held_against_chance(self, build, shared, verdict):
        outcome = decisions.kinds_have_their_own_heads(self.evidence(build, shared))
        assert outcome.decided is verdict
        assert outcome.parts[0].estimate.effect == pytest.approx(shared - 12 * 12 / 40)

    def test_not_tested_without_such_heads(self, build):
        with pytest.raises(NotTested, match="no two kinds"):
            decisions.kinds_have_their_own_heads(self.evidence(build, 0, size=0))


class TestElicitation:
    """Of 32 heads 10 count before the decision and 10 at it; the probe of layer 2 is read."""

    def tables(self, design, *, gain=0.3, shared=0, excess=0.2, offset=4, eliciting=10, own=10):
        probe = pd.DataFrame(
            [
                (offset, layer, 30, found, found - 0.1, found + 0.1)
                for layer in range(design.layers + 1)
                for found in [gain if layer == design.layers // 2 else -50.0]
            ],
            columns=["offset", "layer", "notes", "gain", "gain_low", "gain_high"],
        )
        excess = excess if eliciting else np.nan
        row = {"offset": offset, "n_heads": 32, "eliciting": eliciting, "own": own}
        row |= {"shared": shared, "depth": 0.5, "own_depth": 0.9, "notes": 30}
        row |= {"note_mass": 0.5 + excess, "uniform": 0.5}
        row |= {"excess_low": excess - 0.1, "excess_high": excess + 0.1}
        return {"elicitation_probe": probe, "elicitation_sets": pd.DataFrame([row])}

    def outcome(self, build, **options):
        tables = self.tables(build.design, **options)
        return decisions.region_is_elicited_early(build.evidence(**tables))

    def test_holds_where_other_heads_count_that_read_the_note(self, build):
        outcome = self.outcome(build)
        assert outcome.decided is Verdict.HOLDS
        effects = [part.estimate.effect for part in outcome.parts]
        assert effects == pytest.approx([0.3, -10 * 10 / 32, 0.2])
        assert "10 of 32; at it 10; both 0. Mean depth 0.50 and 0.90" in outcome.note

    @pytest.mark.parametrize(
        "options", [{"gain": -0.3}, {"shared": 10}, {"excess": -0.2}], ids=lambda o: next(iter(o))
    )
    def test_fails_where_one_part_does(self, build, options):
        assert self.outcome(build, **options).decided is Verdict.DOES_NOT_HOLD

    @pytest.mark.parametrize("options", [{"gain": 0.0}, {"shared": 3}, {"excess": 0.05}])
    def test_shows_no_difference_within_an_interval(self, build, options):
        assert self.outcome(build, **options).decided is Verdict.NO_DIFFERENCE

    @pytest.mark.parametrize("options", [{"eliciting": 0}, {"own": 0}])
    def test_undecided_without_heads_to_compare(self, build, options):
        outcome = self.outcome(build, **options)
        assert outcome.decided is Verdict.UNDECIDED
        assert outcome.parts[0].verdict is Verdict.HOLDS
        assert self.outcome(build, gain=-0.3, **options).decided is Verdict.DOES_NOT_HOLD

    def test_not_tested_where_decisions_come_too_soon_and_says_what_was_found(self, build):
        found = r"2 before, .* \+0.30 \[0.20, 0.40\] .* 10 of 32 heads"
        with pytest.raises(NotTested, match=found):
            self.outcome(build, offset=2)
        with pytest.raises(NotTested, match="nor any nearer"):
            self.outcome(build, offset=0)
        with pytest.raises(NotTested, match="probes that read"):
            decisions.region_is_elicited_early(build.evidence())


def test_every_claim_of_version_2_has_a_row(build):
    ids = judge_all(build.evidence())["id"]
    numbered = [id for id in ids if id.startswith("V") and "." not in id]
    assert numbered == [f"V{i:02d}" for i in range(1, 14)]


class TestAttention:
    """Two heads a kind of decision; a place has a tenth of the visible tokens."""

    def frame(self, at_events, at_others=(0.1, 0.1), segments=("reasoning",), notes=NOTES):
        rows = [
            (kind, segment, null, place, 0, head, note, mass[i] + jitter * (1 + head), 0.1)
            for i, (kind, place) in enumerate(
                (("region", "chosen_region"), ("departure", "near_miss"))
            )
            for segment in segments
            for null, mass in (("", at_events), ("other_token", at_others))
            if mass is not None and mass[i] is not None
            for head in range(2)
            for note, jitter in zip(notes, noise(0.01) * (1 if null else 2))
        ]
        columns = ["kind", "segment", "null", "place", "layer", "head", "example"]
        frame = pd.DataFrame(rows, columns=[*columns, "mass", "uniform"])
        return pd.concat([frame, frame.assign(place="note", mass=9.0)])  # not asked for

    def outcome(self, build, *args, **options):
        frame = self.frame(*args, **options)
        return decisions.families_attend_to_their_source(build.evidence(event_attention=frame))

    @pytest.mark.parametrize(
        ("at_events", "at_others", "verdict"),
        [
            ((0.4, 0.3), (0.1, 0.1), Verdict.HOLDS),
            ((0.02, 0.3), (0.02, 0.1), Verdict.DOES_NOT_HOLD),  # regions: less than evenly spread
            ((0.4, 0.3), (0.6, 0.1), Verdict.DOES_NOT_HOLD),  # regions: more at other tokens
            ((0.4, 0.1), (0.1, 0.1), Verdict.NO_DIFFERENCE),  # departures: as evenly spread
            ((0.4, 0.3), (0.1, 0.3), Verdict.NO_DIFFERENCE),  # departures: as at other tokens
        ],
    )
    def test_both_families_must_do_both(self, build, at_events, at_others, verdict):
        outcome = self.outcome(build, at_events, at_others)
        assert outcome.decided is verdict
        assert len(outcome.parts) == 4

    def test_a_note_is_one_value_the_mean_over_heads(self, build):
        outcome = self.outcome(build, (0.4, 0.3), segments=("reasoning", "answer"))
        effects = [part.estimate.effect for part in outcome.parts]
        assert effects == pytest.approx([0.3, 0.3, 0.3, 0.3, 0.2, 0.2, 0.2, 0.2], abs=0.01)
        assert {part.estimate.n for part in outcome.parts} == {len(NOTES)}
        assert "region, answer: 0.398 (0.100) of 2 heads" in outcome.note

    def test_without_matched_tokens_the_even_spread_decides(self, build):
        outcome = self.outcome(build, (0.4, 0.3), None)
        assert outcome.decided is Verdict.HOLDS and len(outcome.parts) == 2

    @pytest.mark.parametrize(
        ("mass", "verdict"), [(0.4, Verdict.UNDECIDED), (0.02, Verdict.DOES_NOT_HOLD)]
    )
    def test_one_family_alone_can_only_refute(self, build, mass, verdict):
        outcome = self.outcome(build, (mass, None), (0.1, None))
        assert outcome.decided is verdict
        assert "No head counts at decisions of the kind departure" in outcome.note

    def test_undecided_with_a_single_note(self, build):
        outcome = self.outcome(build, (0.4, 0.3), notes=NOTES[:1])
        assert outcome.decided is Verdict.UNDECIDED

    def test_not_tested_without_a_head_that_counts(self, build):
        within = self.frame((0.4, 0.3)).assign(kind="within")
        with pytest.raises(NotTested, match="no head counts"):
            decisions.families_attend_to_their_source(build.evidence(event_attention=within))
        with pytest.raises(NotTested, match="attention of heads"):
            decisions.families_attend_to_their_source(build.evidence())
