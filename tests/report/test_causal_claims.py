import pandas as pd
import pytest

from mechdistill.report.claims import causal
from mechdistill.report.evidence import NotTested
from mechdistill.report.verdicts import Verdict

ALIVE = {"top": 0.8, "random": 0.0, "lowest": 0.0, "all": 0.9}


def generated(build, shares, **options):
    return pd.concat(
        build.patched(shares, metric=metric, phase=phase, site="pattern", **options)
        for phase, metric in ((1, "focus"), (2, "confusion"))
    )


@pytest.mark.parametrize(
    "test",
    [
        causal.denoising_restores_focus,
        causal.noising_lowers_focus,
        causal.denoising_lowers_confusion,
        causal.noising_raises_confusion,
    ],
)
class TestSweep:
    def test_holds_where_top_heads_move_the_measure(self, build, test):
        evidence = build.evidence(generated=generated(build, ALIVE))
        outcome = test(evidence)
        assert outcome.decided is Verdict.HOLDS
        assert outcome.parts[0].estimate.effect == pytest.approx(0.8, abs=0.05)
        assert "16: 80 %" in outcome.note
        assert "all heads: 90 %" in outcome.note

    def test_fails_where_they_move_it_the_wrong_way(self, build, test):
        evidence = build.evidence(generated=generated(build, {"top": -0.5}))
        assert test(evidence).decided is Verdict.DOES_NOT_HOLD

    def test_fails_where_random_heads_move_it_more(self, build, test):
        shares = {"top": 0.4, "random": 0.8}
        outcome = test(build.evidence(generated=generated(build, shares)))
        assert outcome.decided is Verdict.DOES_NOT_HOLD
        assert outcome.parts[-1].name.startswith("top minus random")

    def test_says_that_no_random_heads_stood_beside(self, build, test):
        outcome = test(build.evidence(generated=generated(build, {"top": 0.4})))
        assert "No random heads" in outcome.note

    def test_no_difference_where_they_do_nothing(self, build, test):
        evidence = build.evidence(generated=generated(build, {"top": 0.0}, noise=0.3))
        assert test(evidence).decided is Verdict.NO_DIFFERENCE

    def test_undecided_where_the_corruption_moved_nothing(self, build, test):
        evidence = build.evidence(generated=generated(build, ALIVE, gap=0.0))
        outcome = test(evidence)
        assert outcome.decided is Verdict.UNDECIDED
        assert "did not move" in outcome.note

    def test_not_tested_without_runs(self, build, test):
        with pytest.raises(NotTested, match="generated"):
            test(build.evidence())


def test_output_reading_uses_margins_at_the_output_site(build):
    margin = build.patched(ALIVE, metric="margin", phase=1, site="output")
    assert (
        causal.denoising_restores_region_margin(build.evidence(margin=margin)).decided
        is Verdict.HOLDS
    )
    pattern_only = margin.assign(site="pattern")
    with pytest.raises(NotTested, match="output site"):
        causal.denoising_restores_region_margin(build.evidence(margin=pattern_only))


class TestControls:
    def test_negligible_controls_hold(self, build):
        evidence = build.evidence(generated=generated(build, ALIVE))
        assert causal.controls_negligible(evidence).decided is Verdict.HOLDS

    def test_random_heads_that_do_half_as_much_refute(self, build):
        evidence = build.evidence(generated=generated(build, {**ALIVE, "random": 0.4}))
        assert causal.controls_negligible(evidence).decided is Verdict.DOES_NOT_HOLD

    def test_random_heads_as_good_as_top_heads_refute(self, build):
        shares = {"top": 0.5, "random": 0.5, "lowest": 0.0}
        evidence = build.evidence(generated=generated(build, shares, noise=0.2))
        assert causal.controls_negligible(evidence).decided is Verdict.DOES_NOT_HOLD

    def test_dead_corruption_leaves_it_undecided(self, build):
        alive = build.patched(ALIVE, metric="focus", phase=1, site="pattern")
        dead = build.patched(ALIVE, metric="confusion", phase=2, site="pattern", gap=0.0)
        outcome = causal.controls_negligible(build.evidence(generated=pd.concat([alive, dead])))
        assert outcome.decided is Verdict.UNDECIDED
        assert "phase 2" in outcome.note


class TestConcentration:
    def test_concave_growth_holds(self, build):
        evidence = build.evidence(generated=generated(build, ALIVE))
        assert causal.few_heads_suffice(evidence).decided is Verdict.HOLDS

    def test_proportional_growth_is_no_concentration(self, build):
        frame = generated(build, ALIVE, concave=False, noise=0.1)
        outcome = causal.few_heads_suffice(build.evidence(generated=frame))
        assert outcome.decided is not Verdict.HOLDS


class TestManipulation:
    def frame(self, confusion, rate):
        notes = [f"n{i}" for i in range(20)]
        rows = [
            (2, "K2", n, "confusion", 0.2, 0.2 + confusion + 0.001 * i) for i, n in enumerate(notes)
        ]
        rows += [
            (2, "K2", n, "near_miss_rate", 0.0, float(i % 10 < 10 * rate))
            for i, n in enumerate(notes)
        ]
        return pd.DataFrame(
            rows, columns=["phase", "twin", "example", "metric", "clean", "corrupted"]
        )

    def test_holds_where_both_rise(self, build):
        evidence = build.evidence(manipulation=self.frame(0.1, 0.8))
        assert causal.corruption_steers(evidence).decided is Verdict.HOLDS

    def test_fails_where_confusion_falls(self, build):
        evidence = build.evidence(manipulation=self.frame(-0.1, 0.8))
        assert causal.corruption_steers(evidence).decided is Verdict.DOES_NOT_HOLD

    def test_says_what_was_not_measured(self, build):
        frame = self.frame(0.1, 0.8)
        frame = frame[frame["metric"] == "confusion"]
        outcome = causal.corruption_steers(build.evidence(manipulation=frame))
        assert outcome.decided is Verdict.HOLDS
        assert "near_miss_rate" in outcome.note


def test_first_head_that_does_it_all_leaves_no_growth_to_ask(build):
    margin = build.patched({"top": 1.0}, metric="margin", phase=2, site="output", gap=10.0)
    bins = margin["bin"].rank(method="dense")
    start = margin["corrupted"].where(margin["direction"] == "denoise", margin["clean"])
    end = margin["clean"].where(margin["direction"] == "denoise", margin["corrupted"])
    falling = margin.assign(patched=start + (end - start) * (1.02 - 0.01 * bins))
    outcome = causal.denoising_restores_within_margin(build.evidence(margin=falling))
    assert outcome.decided is Verdict.HOLDS
    assert len(outcome.parts) == 1
    assert "no growth is left to ask" in outcome.note


def test_written_decisions_are_read_at_the_papers_site(build):
    named = build.patched(ALIVE, metric="region_recall", phase=1, site="pattern")
    kept = build.patched({"top": -0.4}, metric="near_miss_rate", phase=2, site="pattern")
    evidence = build.evidence(generated=pd.concat([named, kept]))
    assert causal.denoising_restores_regions(evidence).decided is Verdict.HOLDS
    assert causal.denoising_rules_near_misses_out(evidence).decided is Verdict.DOES_NOT_HOLD
    with pytest.raises(NotTested, match="focus"):
        causal.denoising_restores_focus(evidence)
