"""What each row of the claims table says: the paper's claims in plain words, variants, checks.

`C04.outputs` reads C04 on head outputs and decision margins; `V` rows are claims of version 2, `X`
rows checks that the paper does not make.
"""

STATEMENTS = {
    "C01": "Early reasoning aligns with the dominant signal: the teacher's Focus(k) rises with k",
    "C02": "The heads with the highest CoarseScore lie in early layers",
    "C03": (
        "A top coarse head attends to anchor tokens more than to other prompt tokens and more "
        "than other heads do"
    ),
    "C04": (
        "Denoising the attention patterns of the top CoarseScore heads restores Focus, more "
        "than random heads do, and more with more heads (sufficiency)"
    ),
    "C04.outputs": "C04 read on head outputs and the margin of region decisions",
    "C04.written": "C04 read by the share of true regions that the generated reasoning names",
    "C05": (
        "Noising the attention patterns of the top CoarseScore heads lowers Focus, more than "
        "random heads do, and more with more heads (necessity)"
    ),
    "C05.outputs": "C05 read on head outputs and the margin of region decisions",
    "C05.written": "C05 read by the share of true regions that the generated reasoning names",
    "C06": (
        "Count-matched random heads and the lowest-ranked heads have a negligible effect, in "
        "both phases and directions"
    ),
    "C06.outputs": "C06 read on head outputs and decision margins",
    "C07": (
        "A few heads suffice: the smallest bin does more than its share of the largest bin's effect"
    ),
    "C07.outputs": "C07 read on head outputs and decision margins",
    "C08": "MLP layers play a limited role beside the heads",
    "C09": "The highest RefineScores lie in later layers than the highest CoarseScores",
    "C10": (
        "Along the reasoning, top refine heads' queries grow more similar to the keys of "
        "earlier shortlist mentions"
    ),
    "C11": (
        "Along the reasoning, top refine heads' queries grow less similar to the keys of "
        "near-miss mentions"
    ),
    "C12": "Along the reasoning, top refine heads' writes point more along the margin's gradient",
    "C13": (
        "Denoising the attention patterns of the top RefineScore heads lowers Confusion, more "
        "than random heads do, and more with more heads (sufficiency)"
    ),
    "C13.help": (
        "C13 read on head outputs, the margin of within-region decisions and heads ranked by "
        "Help, the write factor of RefineScore, alone"
    ),
    "C13.outputs": "C13 read on head outputs and the margin of within-region decisions",
    "C13.written": "C13 read by the share of near-misses that the generated reasoning keeps",
    "C14": (
        "Noising the attention patterns of the top RefineScore heads raises Confusion, more "
        "than random heads do, and more with more heads (necessity)"
    ),
    "C14.help": (
        "C14 read on head outputs, the margin of within-region decisions and heads ranked by "
        "Help, the write factor of RefineScore, alone"
    ),
    "C14.outputs": "C14 read on head outputs and the margin of within-region decisions",
    "C14.written": "C14 read by the share of near-misses that the generated reasoning keeps",
    "C15": "The near-miss corruption steers the later reasoning to the near-miss reading",
    "C16": (
        "The phases can be told apart: the head sets overlap no more than chance, and each "
        "set moves its own decision more than the other's"
    ),
    "C17": "The phases complement each other: phases 1 and 2 together beat either alone",
    "C18": (
        "Students distilled on the reasoning alone lose against the teacher (printed: 35 to "
        "38 %, of a quantity that is not named)"
    ),
    "C19": "Mech has higher Focus than every baseline",
    "C20": "Mech has lower Confusion than every baseline",
    "C21": "Mech has higher LAS (faithfulness to the teacher)",
    "C22": "Mech has higher macro-F1 than every baseline",
    "C23": (
        "In units of the gap between vanilla and teacher, the gains in Focus and Confusion "
        "are the largest among Focus, Confusion, LAS and F1"
    ),
    "C24": (
        "Baselines imitate (LAS near mech's) without the mechanism (Sharp, Align, Loop, Help "
        "below mech's)"
    ),
    "C25": "Mech raises Sharp",
    "C26": "Mech raises Align",
    "C27": "Mech raises Loop",
    "C28": "Mech raises Help",
    "C29": "Gains are smaller on MIMIC-IV than on WikiSeeAlso",
    "C30": "The gains hold for other backbones (Qwen3-4B, Gemma-3-12B)",
    "C31": "A larger student is better, on every metric and method",
    "C32": "No student exceeds the teacher on any metric",
    "C33": "The teacher builds Focus fast, then Confusion falls after t*",
    "C34": "Students distilled on the reasoning alone have weak early Focus and lasting Confusion",
    "C35": "Phase-1-only training raises Focus and does not lower Confusion",
    "C36": "Phase-2-only training has limited Focus and lowers Confusion somewhat",
    "C37": "The full objective follows the teacher's trajectory more closely than every ablation",
    "C38": "Removing phase 1, or phase 2, lowers LAS",
    "C39": "Removing any phase-1 term lowers LAS",
    "C40": "Removing any phase-2 term lowers LAS",
    "C41": "The interaction terms give strong complementary gains",
    "C42": "The full objective has the highest LAS of all conditions",
    "C43": "All marked gains are significant: Wilcoxon p < 0.05 and a bootstrap interval without 0",
    "C44": "The kurtosis of pooled attention is numerically stable with eps 1e-6",
    "C45": "The teacher does the task without training on it (zero-shot)",
    "C46": "Mechanistic training adds nothing to the student's cost at inference",
    "V01": (
        "Decisions are token-level events (region, within a region, departure from a near-miss "
        "named earlier) for which the model's own margin speaks"
    ),
    "V02": "Attribution ranks heads at decisions as exact mean-ablation does",
    "V03": "The heads' outputs, put into another note's context, carry the decision over",
    "V04": "Null calibration discounts generic heads, which move any token's margin",
    "V05": "All 5,651 candidate codes of MIMIC-IV stand in context",
    "V06": (
        "A small set of heads, one for all notes, is necessary and sufficient for decisions on "
        "essentially every note (by ablation)"
    ),
    "V06.phases": "The set is structured by phase: region decisions have heads of their own",
    "V07": (
        "Distinct families of heads attend to the region's candidates and back to the near-miss "
        "named earlier"
    ),
    "V08": (
        "The region can be elicited several tokens before the code, from other, mid-layer heads "
        "that read the input"
    ),
    "V09": "MISTILL supervises the student's pooled attention at exactly the decision events",
    "V10": (
        "Causal recovery of departures nearly doubles in a student of another family, on heads "
        "found after training"
    ),
    "V11": (
        "Causal recovery gains a little, with the same sign in all seeds, in a student that "
        "already has most of it"
    ),
    "V12": "MISTILL shows no task difference where weights are trained in bf16",
    "V13": "MISTILL costs task performance where weights are kept in fp32",
    "X1": "The two phases appear without an instruction or template that asks for them",
    "X2": "The top heads matter at decisions and not at any token (generic heads)",
    "X3": (
        "Focus and Confusion measure meaning: Focus is above its level with other notes' "
        "anchors, Confusion below that of a shuffled continuation"
    ),
    "X4": "The choice of heads matters: training towards random heads gains less",
    "X5": "Head scores are reliable: rankings of two halves of the notes agree",
    "X6": "The effect of the top heads survives a growing number of candidates",
}
"""Claim id -> statement."""
