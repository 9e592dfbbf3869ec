"""The metrics of the tables: their names for people, their direction, their unit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mechdistill.evaluate.frequency import GROUPS


class Metric(NamedTuple):
    """A column of a table. `better` is +1 where high is good, -1 where low is."""

    key: str
    short: str
    long: str
    better: int
    unit: str

    @property
    def arrow(self) -> str:
        return "↑" if self.better > 0 else "↓"


TABLE1 = (
    Metric("focus", "Foc", "reasoning Focus (Eq. 2)", 1, "cosine"),
    Metric("confusion", "Conf", "near-miss Confusion (Eq. 4)", -1, "cosine"),
    Metric("las", "LAS", "leakage-adjusted simulatability (Eq. 8)", 1, "accuracy"),
    Metric(
        "macro_f1_gold_present", "F1", "macro-F1 over the labels gold in the test notes", 1, "F1"
    ),
    Metric("sharp", "Sharp", "sharpness, log10(1 + excess kurtosis) of the pooled row", 1, "log10"),
    Metric("align", "Align", "anchor alignment of the pooled write", 1, "cosine"),
    Metric("loop", "Loop", "QK loop-back: shortlist minus near-miss keys", 1, "cosine"),
    Metric("help", "Help", "OV helpfulness: pooled write with the margin's gradient", 1, "cosine"),
)
"""The columns of the paper's Table 1, in its order."""

TASK = (
    Metric("micro_f1", "micro-F1", "micro-F1", 1, "F1"),
    Metric("macro_f1_all", "macro-F1 all", "macro-F1 over every label, 0/0 as 0", 1, "F1"),
    Metric("macro_f1_caml", "macro-F1 caml", "from macro-precision and macro-recall", 1, "F1"),
    Metric("samples_f1", "samples-F1", "mean F1 of a note", 1, "F1"),
    Metric("exact_match", "exact", "share of notes with exactly the gold codes", 1, "share"),
    Metric("p_at_1", "P@1", "precision at 1", 1, "share"),
    Metric("p_at_3", "P@3", "precision at 3", 1, "share"),
    Metric("p_at_5", "P@5", "precision at 5", 1, "share"),
)

DECISIONS = (
    Metric("perplexity", "PPL", "perplexity of the teacher's reasoning", -1, "perplexity"),
    Metric("bleu_corpus", "BLEU-4", "corpus BLEU-4 with the teacher's reasoning", 1, "points"),
    Metric("margin_region", "margin region", "margin at region decisions", 1, "logits"),
    Metric("accuracy_region", "acc. region", "share of region decisions right", 1, "share"),
    Metric("margin_within", "margin within", "margin at within-region decisions", 1, "logits"),
    Metric("accuracy_within", "acc. within", "share of within-region decisions right", 1, "share"),
    Metric("margin_departure", "margin dep", "margin where the near-miss is left", 1, "logits"),
    Metric("accuracy_departure", "acc. dep", "share of such decisions right", 1, "share"),
)

CONTROLS = (
    Metric("focus_contrast", "Foc contrast", "less cosine with the near-misses", 1, "cosine"),
    Metric("focus_shuffled", "Foc shuffled", "against other notes' anchors (chance)", 1, "cosine"),
    Metric("confusion_0", "Conf(0)", "Confusion of the anchor text alone", -1, "cosine"),
    Metric("confusion_change", "Conf change", "Confusion less Confusion(0)", -1, "cosine"),
    Metric("confusion_contrast", "Conf contrast", "less cosine with the anchors", -1, "cosine"),
    Metric("confusion_shuffled", "Conf shuffled", "with a shuffled continuation", -1, "cosine"),
    Metric("confusion_other", "Conf other", "against other notes' near-misses", -1, "cosine"),
)

FOUND = (
    Metric("sharp_found", "Sharp", "sharpness, heads found after training", 1, "log10"),
    Metric("align_found", "Align", "anchor alignment, heads found after training", 1, "cosine"),
    Metric("loop_found", "Loop", "loop-back, heads found after training", 1, "cosine"),
    Metric("help_found", "Help", "helpfulness, heads found after training", 1, "cosine"),
)

SIMULATED = (
    Metric("simulator_both", "Acc(q+r)", "F1 of the simulator, question and reasoning", 1, "F1"),
    Metric("simulator_question", "Acc(q)", "F1 of the simulator, question alone", 1, "F1"),
    Metric("simulator_reasoning", "Acc(r)", "F1 of the simulator, reasoning alone", 1, "F1"),
    Metric("las", "LAS simple", "Acc(q + r) less Acc(q) (Eq. 8)", 1, "F1"),
    Metric("las_exact", "LAS exact", "the same of exactly equal sets of codes", 1, "share"),
    Metric("las_split", "LAS split", "mean of LAS where reasoning leaks and elsewhere", 1, "F1"),
    Metric("las_leaking_gain", "LAS leaking", "LAS where reasoning alone answers", 1, "F1"),
    Metric("las_others_gain", "LAS others", "LAS where reasoning alone does not answer", 1, "F1"),
    Metric("las_leaking", "leaking", "share of notes where reasoning alone answers", -1, "share"),
)
"""What the simulator made of the reasoning; only in studies that name one."""

FREQUENCY = tuple(
    Metric(
        f"{kind}_f1_{group}",
        f"{kind}-F1 {group}",
        f"{kind}-F1 over the {group} labels by training frequency",
        1,
        "F1",
    )
    for kind in ("macro", "micro")
    for group in GROUPS
)
"""Macro-F1 over the labels gold in the test notes, micro-F1 over all of a group."""

MORE_TABLES = (
    (TASK, "Table 2. Task measures."),
    (DECISIONS, "Table 3. Fidelity to the teacher's text; decisions on the teacher's trace."),
    (CONTROLS, "Table 4. Controls of Focus and Confusion."),
    (FOUND, "Table 5. Mechanism on heads found anew after training."),
)
"""The tables beside Table 1, with their titles."""

LAST_TABLES = (
    (
        SIMULATED,
        "Table 8. Simulatability: what a simulator trained on the teacher's reasoning answers.",
    ),
    (FREQUENCY, "Table 9. F1 by training frequency of the labels: head, torso and tail."),
)
"""Those behind the tables of patching."""

BY_KEY = {
    metric.key: metric
    for metric in (*SIMULATED, *TABLE1, *TASK, *DECISIONS, *CONTROLS, *FOUND, *FREQUENCY)
}

METHODS = {
    "teacher": "Teacher",
    "vanilla": "Vanilla",
    "unicott": "UniCoTT (adapted)",
    "morsd": "MoRSD (adapted)",
    "semcot": "SemCoT (adapted)",
    "cwt": "CWT (adapted)",
    "vanilla_positions": "Vanilla + positions",
    "mech": "Mech (phases 1 and 2)",
    "vanilla_margin": "Vanilla + margin loss",
    "p1_only": "Phase 1 only",
    "p2_only": "Phase 2 only",
    "random_pool": "Mech, random heads",
    "mech_without_p1_attention": "Mech without KL of rows",
    "mech_without_p1_write": "Mech without A",
    "mech_without_p1_interaction": "Mech without PCS",
    "mech_without_p2_loop": "Mech without R",
    "mech_without_p2_write": "Mech without H",
    "mech_without_p2_interaction": "Mech without PRS",
}
"""Method -> its name in tables and figures, in the order of the paper's rows."""


def in_paper_order(methods: Iterable[str]) -> list[str]:
    """Methods in the order of the paper's rows; unknown ones last, as they come."""
    places = {method: place for place, method in enumerate(METHODS)}
    return sorted(methods, key=lambda method: places.get(method, len(places)))


def method_name(method: str) -> str:
    """A method's name for people; an unknown one shows as it is called."""
    return METHODS.get(method, method)
