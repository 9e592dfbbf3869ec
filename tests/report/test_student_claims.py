import pytest

from mechdistill.report.claims import ablations, scope, students
from mechdistill.report.claims.scores import difference
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.metrics import TABLE1
from mechdistill.report.verdicts import Verdict
from mechdistill.significance.plan import ABLATIONS

UP, FLAT, DOWN = (0.1, 0.05, 0.15, "up"), (0.0, -0.05, 0.05, ""), (-0.1, -0.15, -0.05, "down")


def against_both(build, metric, first, second):
    return build.evidence(
        comparisons=build.comparisons(
            [(metric, "mech", "vanilla", *first), (metric, "mech", "vanilla_positions", *second)]
        )
    )


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (UP, UP, Verdict.HOLDS),
        (UP, FLAT, Verdict.NO_DIFFERENCE),
        (UP, DOWN, Verdict.DOES_NOT_HOLD),
    ],
)
def test_mech_must_beat_each_baseline(build, first, second, verdict):
    evidence = against_both(build, "focus", first, second)
    assert students.mech_focus(evidence).decided is verdict


def test_lower_confusion_is_better(build):
    assert students.mech_confusion(against_both(build, "confusion", DOWN, DOWN)).decided is (
        Verdict.HOLDS
    )
    assert students.mech_confusion(against_both(build, "confusion", UP, UP)).decided is (
        Verdict.DOES_NOT_HOLD
    )


def test_baseline_that_was_not_compared_is_resampled_from_the_scores(build):
    means = {(m, "focus"): v for m, v in {"mech": 0.6, "vanilla": 0.5}.items()}
    found = difference(build.evidence(scores=build.scores(means)), "focus", "mech", "vanilla")
    assert found.effect == pytest.approx(0.1, abs=0.01)
    assert found.low < 0.1 < found.high


def test_las_is_not_tested(build):
    with pytest.raises(NotTested, match="simulator"):
        students.mech_las(build.evidence())


@pytest.mark.parametrize(("cells", "verdict"), [(UP, Verdict.HOLDS), (DOWN, Verdict.DOES_NOT_HOLD)])
def test_las_is_tested_where_a_simulator_was(build, cells, verdict):
    assert students.mech_las(against_both(build, "las", cells, cells)).decided is verdict


def test_dropped_phases_and_terms_are_read_on_las(build):
    every = ("vanilla", *ABLATIONS)
    rows = [("las", "mech", other, *UP) for other in every]
    comparisons = build.comparisons(rows)
    full = Evidence(build.with_methods("mech", *every).design, {"comparisons": comparisons})
    for claimed in (
        ablations.phases_raise_las,
        ablations.p1_terms_raise_las,
        ablations.p2_terms_raise_las,
        ablations.interactions_gain,
        ablations.full_is_best,
    ):
        assert claimed(full).decided is Verdict.HOLDS
    few = Evidence(build.with_methods("mech", "vanilla").design, {"comparisons": comparisons})
    with pytest.raises(NotTested, match="p1_only, p2_only not trained"):
        ablations.phases_raise_las(few)
    with pytest.raises(NotTested, match="simulator"):
        ablations.phases_raise_las(build.evidence())


def test_complementary_phases_are_read_on_las_where_it_is(build):
    means = {("mech", "las"): 0.2, ("p1_only", "las"): 0.5, ("p2_only", "las"): 0.5}
    means |= {(m, "samples_f1"): v for m, v in (("mech", 0.7), ("p1_only", 0.5), ("p2_only", 0.5))}
    outcome = students.phases_complement(build.evidence(scores=build.scores(means)))
    assert outcome.decided is Verdict.DOES_NOT_HOLD
    assert "not measured" not in outcome.note


def test_unmeasured_metric_is_not_tested(build):
    with pytest.raises(NotTested, match="loop"):
        students.mech_loop(build.evidence(scores=build.scores({("mech", "focus"): 0.5})))


@pytest.mark.parametrize(("alone", "verdict"), [(0.5, Verdict.HOLDS), (0.9, Verdict.DOES_NOT_HOLD)])
def test_complementary_phases(build, alone, verdict):
    means = {
        ("mech", "samples_f1"): 0.7,
        ("p1_only", "samples_f1"): 0.5,
        ("p2_only", "samples_f1"): alone,
    }
    evidence = build.evidence(scores=build.scores(means))
    assert students.phases_complement(evidence).decided is verdict


@pytest.mark.parametrize(
    ("student", "verdict"),
    [(0.4, Verdict.HOLDS), (0.9, Verdict.DOES_NOT_HOLD), (0.6, Verdict.NO_DIFFERENCE)],
)
def test_loss_against_the_teacher(build, student, verdict):
    means = {("teacher", "focus"): 0.6, ("vanilla", "focus"): student}
    evidence = build.evidence(scores=build.scores(means))
    assert students.vanilla_loses(evidence).decided is verdict


class TestLargestGains:
    def means(self, **mech):
        low = {"focus": 0.3, "confusion": 0.6, "samples_f1": 0.3}
        high = {"focus": 0.8, "confusion": 0.1, "samples_f1": 0.8}
        rows = {("vanilla", m): v for m, v in low.items()}
        rows |= {("teacher", m): v for m, v in high.items()}
        return rows | {("mech", m): v for m, v in mech.items()}

    def test_larger_f1_gain_refutes(self, build):
        means = self.means(focus=0.35, confusion=0.55, samples_f1=0.75)
        evidence = build.evidence(scores=build.scores(means))
        assert students.focus_and_confusion_gain_most(evidence).decided is Verdict.DOES_NOT_HOLD

    def test_without_las_it_cannot_be_confirmed(self, build):
        means = self.means(focus=0.75, confusion=0.15, samples_f1=0.35)
        outcome = students.focus_and_confusion_gain_most(build.evidence(scores=build.scores(means)))
        assert outcome.decided is Verdict.UNDECIDED
        assert outcome.parts[0].estimate.effect == pytest.approx(80, abs=10)

    def test_no_gap_to_the_teacher_leaves_it_open(self, build):
        means = self.means(focus=0.5, confusion=0.3, samples_f1=0.5)
        means["teacher", "focus"] = means["vanilla", "focus"]
        outcome = students.focus_and_confusion_gain_most(build.evidence(scores=build.scores(means)))
        assert outcome.decided is Verdict.UNDECIDED
        assert "focus" in outcome.note


def test_one_student_above_the_teacher_refutes(build):
    rows = [
        (
            m.key,
            "mech",
            "teacher",
            -0.1 * m.better,
            *((-0.2, -0.05) if m.better > 0 else (0.05, 0.2)),
            "",
        )
        for m in TABLE1
        if m.key != "las"
    ]
    below = build.evidence(comparisons=build.comparisons(rows))
    tiny = Evidence(build.with_methods("mech").design, below.tables)
    assert students.teacher_is_best(tiny).decided is Verdict.HOLDS
    rows[0] = ("focus", "mech", "teacher", 0.1, 0.05, 0.15, "up")
    above = Evidence(tiny.design, {"comparisons": build.comparisons(rows)})
    outcome = students.teacher_is_best(above)
    assert outcome.decided is Verdict.DOES_NOT_HOLD
    assert "Foc, mech minus teacher" in outcome.note


def test_every_cell_must_be_marked(build):
    cells = [
        (m.key, "mech", "vanilla", *(UP if m.better > 0 else DOWN))
        for m in TABLE1
        if m.key != "las"
    ]
    full = build.evidence(comparisons=build.comparisons(cells))
    assert students.all_gains_significant(full).decided is Verdict.HOLDS
    cells[0] = ("focus", "mech", "vanilla", *FLAT)
    outcome = students.all_gains_significant(build.evidence(comparisons=build.comparisons(cells)))
    assert outcome.decided is Verdict.DOES_NOT_HOLD
    assert "6 cells of 7" in outcome.note
    assert outcome.parts[0].name.startswith("the weakest cell: Foc")


def test_a_marked_loss_is_no_gain(build):
    cells = [("focus", "mech", "vanilla", *DOWN)]
    outcome = students.all_gains_significant(build.evidence(comparisons=build.comparisons(cells)))
    assert outcome.decided is Verdict.DOES_NOT_HOLD
    assert "none" in outcome.note


@pytest.mark.parametrize(
    "test",
    [
        students.smaller_on_mimic,
        students.other_backbones,
        students.larger_is_better,
        scope.teacher_is_zero_shot,
    ],
)
def test_claims_beyond_the_study_are_not_tested(build, test):
    with pytest.raises(NotTested):
        test(build.evidence())


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [((1000, 1000), Verdict.HOLDS), ((1000, 1200), Verdict.DOES_NOT_HOLD)],
)
def test_equal_sizes_mean_equal_cost(build, sizes, verdict):
    budgets = {(m, 0): {"parameters": n} for m, n in zip(("mech", "vanilla"), sizes, strict=True)}
    evidence = Evidence(build.design, {}, budgets)
    assert scope.no_inference_cost(evidence).decided is verdict


def test_nan_scores_are_skipped_pairwise(build):
    scores = build.scores({("mech", "focus"): 0.6, ("vanilla", "focus"): 0.5})
    scores.loc[scores["example"] == "test-00003", "value"] = float("nan")
    found = difference(build.evidence(scores=scores), "focus", "mech", "vanilla")
    assert found.effect == pytest.approx(0.1, abs=0.01)
