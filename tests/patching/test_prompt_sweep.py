"""Sweeps over prompts of one's own: the workflow's numbers, and every family's by hooks alone."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from mechdistill.errors import InputError
from mechdistill.models.tap import attach
from mechdistill.patching import PatchSweep, PromptPair, sweep_ranking, sweep_single_heads
from mechdistill.patching.conditions import conditions, distinct_sets, head_masks, heads_of
from mechdistill.patching.decision_sweep import DIRECTIONS, SITES
from mechdistill.patching.effects import margin_table
from mechdistill.patching.margin_sweep import sweep_margins
from mechdistill.patching.pairs import Pair
from mechdistill.patching.prompt_pairs import forced_pair
from tests.models.tiny import GROUPS, HEADS, LAYERS, MAKERS, WIDTH, before_rotary, eager_model
from tests.small_tokenizers import byte_level

from .made import event, make_trace

CLEAN = "Note: swollen legs, at rest, sudden. Which one is it?"
PAIR = PromptPair(
    CLEAN,
    CLEAN.replace("sudden", "chilly"),
    target=" acute",
    foils=(" chronic", " stable"),
    continuation=" Heart failure:",
)
OTHER = PromptPair("On exertion, sudden.", "On exertion, steady.", " acute", " chronic")


@pytest.fixture(scope="module")
def pieces():
    texts = [PAIR.clean, PAIR.corrupted, PAIR.continuation, " acute chronic stable", OTHER.clean]
    return byte_level([*texts, OTHER.corrupted, " sudden chilly steady"] * 2, size=330)


@pytest.fixture(params=list(MAKERS))
def family(request):
    return request.param


@pytest.fixture
def random_model(pieces):
    return eager_model("llama", vocab_size=len(pieces))


# --- every family, by hooks on transformers' eager attention --------------------------------------


class SlowPatch:
    """One whole forward pass a condition, nothing of the tap in it."""

    def __init__(self, model, forced):
        self.model, (choice,) = model, forced.decisions
        self.at, self.target, self.foils = choice.query, choice.target, choice.foils
        self.ids = {
            "clean": torch.tensor([forced.clean[: self.at + 1]]),
            "corrupted": torch.tensor([forced.corrupted[: self.at + 1]]),
        }

    def margin(self, side, replaced=None):
        """Of a run in which `replaced` [(layer, head) -> mixed value, or a row] are put in."""
        hooks = []
        for layer, block in enumerate(self.model.model.layers):
            entered = {}
            hooks += [
                block.self_attn.register_forward_pre_hook(
                    partial(self._enter, entered), with_kwargs=True
                ),
                block.self_attn.o_proj.register_forward_pre_hook(
                    partial(self._replace, layer, block.self_attn, entered, replaced or {})
                ),
            ]
        with torch.no_grad():
            logits = self.model(self.ids[side]).logits[0, -1]
        for hook in hooks:
            hook.remove()
        return float(logits[self.target] - max(logits[foil] for foil in self.foils))

    @staticmethod
    def _enter(entered, module, args, named):
        entered["hidden"] = named["hidden_states"]

    @staticmethod
    def _replace(layer, attention, entered, replaced, module, args):
        mixed = args[0].clone()
        _, _, values = before_rotary(attention, entered["hidden"])
        for (at, head), given in replaced.items():
            if at == layer:
                own = values[0, head // (HEADS // GROUPS)]
                part = slice(head * WIDTH, (head + 1) * WIDTH)
                mixed[0, -1, part] = given if len(given) == WIDTH else given @ own
        return (mixed,)

    def donor(self, side, site, heads):
        """Rows or mixed values of a plain run at the decision."""
        mixed = {}
        hooks = [
            block.self_attn.o_proj.register_forward_pre_hook(
                lambda module, args, layer=layer: mixed.__setitem__(layer, args[0][0, -1])
            )
            for layer, block in enumerate(self.model.model.layers)
        ]
        with torch.no_grad():
            rows = self.model(self.ids[side], output_attentions=True).attentions
        for hook in hooks:
            hook.remove()
        if site == "pattern":
            return {(layer, head): rows[layer][0, head, -1] for layer, head in heads}
        return {(n, h): mixed[n][h * WIDTH : (h + 1) * WIDTH] for n, h in heads}


def test_every_head_alone_equals_a_pass_of_its_own(family, pieces):
    model = eager_model(family, vocab_size=len(pieces))
    found = sweep_single_heads(model, pieces, PAIR).values
    slow = SlowPatch(model, forced_pair(PAIR, pieces, "x"))
    assert len(slow.ids["clean"][0]) not in (WIDTH, WIDTH + 1)  # rows and mixed values told apart
    plain = {side: slow.margin(side) for side in slow.ids}
    assert found["clean"].to_numpy() == pytest.approx(plain["clean"], abs=5e-5)
    assert found["corrupted"].to_numpy() == pytest.approx(plain["corrupted"], abs=5e-5)
    assert len(found) == LAYERS * HEADS * len(SITES) * len(DIRECTIONS)
    moved = dict.fromkeys(SITES, 0.0)
    for row in found.itertuples():
        donor, own = slow.ids if row.direction == "denoise" else reversed(slow.ids)
        value = slow.margin(own, slow.donor(donor, row.site, [(row.layer, row.head)]))
        assert row.patched == pytest.approx(value, abs=1e-4)
        moved[row.site] = max(moved[row.site], abs(value - plain[own]))
    assert min(moved.values()) > 0.005


def test_all_heads_together_equal_a_pass_of_their_own(family, pieces):
    model = eager_model(family, vocab_size=len(pieces))
    ranking = heads_of(LAYERS, HEADS)
    values = sweep_ranking(model, pieces, PAIR, ranking, bins=[3], draws=2).values
    slow = SlowPatch(model, forced_pair(PAIR, pieces, "x"))
    for site in SITES:
        for name, heads in (("top", ranking[:3]), ("all", ranking)):
            chosen = (values["ranking"] == name) & (values["site"] == site)
            patched = values[chosen & (values["direction"] == "denoise")]["patched"].item()
            expected = slow.margin("corrupted", slow.donor("clean", site, heads))
            assert patched == pytest.approx(expected, abs=1e-4)


def test_half_precision_agrees_with_the_same_weights_in_single(family, pieces):
    wide = eager_model(family, vocab_size=len(pieces)).to(torch.bfloat16).float()
    expected = sweep_single_heads(wide, pieces, PAIR).summary
    found = sweep_single_heads(wide.to(torch.bfloat16), pieces, PAIR).summary
    largest = expected[["clean", "corrupted"]].abs().to_numpy().max()
    for column in ("clean", "corrupted", "patched"):
        assert (found[column] - expected[column]).abs().max() < 0.1 * max(largest, 1)


# --- the workflow's numbers ----------------------------------------------------------------------


def test_sweep_is_that_of_the_workflow(pieces, monkeypatch):
    """The same tokens through `sweep_margins`, as the rule calls it."""
    model = eager_model("llama", vocab_size=len(pieces))
    forced = forced_pair(PAIR, pieces, "pair 1")
    (choice,) = forced.decisions
    trace = replace(
        make_trace("pair 1", 1, 0, [event("within", choice.query, choice.target, choice.foils)]),
        tokens=forced.clean,
        prompt_length=forced.prompt_length,
    )
    pair = Pair(trace, "K2", forced.corrupted[: forced.prompt_length])
    ranking = [(0, 1), (2, 3), (1, 0)]
    planned = conditions({"top": ranking}, heads_of(LAYERS, HEADS), [1, 2], 3, seed=5)
    sets = distinct_sets(planned)
    masks = head_masks(sets, LAYERS, HEADS)
    monkeypatch.setattr("mechdistill.patching.margin_sweep._taken", lambda effects: effects)
    effects = sweep_margins(
        attach(copy.deepcopy(model)), [pair], 2, masks, pad_id=0, branches_per_pass=512
    )
    expected = margin_table(effects, planned, sets, phase=2, twin="K2")
    found = sweep_ranking(model, pieces, PAIR, ranking, bins=[1, 2], draws=3, seed=5).values
    shared = ["site", "direction", "ranking", "bin", "draw", "clean", "corrupted", "patched"]
    pd.testing.assert_frame_equal(found[shared], expected[shared])


# --- what comes back -----------------------------------------------------------------------------


def test_single_heads_have_a_row_each(random_model, pieces):
    sweep = sweep_single_heads(random_model, pieces, [PAIR, OTHER])
    assert isinstance(sweep, PatchSweep)
    assert len(sweep.summary) == LAYERS * HEADS * len(SITES) * len(DIRECTIONS)
    assert (sweep.summary["n"] == 2).all()
    assert sweep.summary["depth"].max() == 1
    assert set(sweep.values["example"]) == {"pair 1", "pair 2"}
    for row in sweep.summary.sample(8, random_state=0).itertuples():
        start = row.corrupted if row.direction == "denoise" else row.clean
        assert row.difference == pytest.approx(row.patched - start, abs=1e-6)
        sign = 1 if row.direction == "denoise" else -1
        assert row.effect == pytest.approx(sign * row.difference, abs=1e-6)
        assert row.ci_low <= row.difference <= row.ci_high


def test_one_pair_has_no_interval(random_model, pieces):
    single = sweep_single_heads(random_model, pieces, PAIR).summary
    sets = sweep_ranking(random_model, pieces, PAIR, [(0, 0), (1, 1)], draws=2).summary
    for summary in (single, sets):
        intervals = [column for column in summary if column.endswith(("_low", "_high"))]
        assert len(intervals) >= 4
        assert summary[intervals].isna().all(axis=None)


def test_top_is_set_against_as_many_random_heads(random_model, pieces):
    ranking = [(2, 1), (0, 3), (1, 1), (1, 2)]
    sweep = sweep_ranking(random_model, pieces, [PAIR, OTHER], ranking, bins=[1, 4], draws=3)
    cells = sweep.summary.set_index(["site", "direction", "ranking", "bin"])
    assert set(sweep.summary["ranking"]) == {"top", "random", "depth_matched", "lowest", "all"}
    top = cells.loc[("output", "denoise", "top", 4)]
    random = cells.loc[("output", "denoise", "random", 4)]
    assert top["top_minus_random"] == pytest.approx(top["effect"] - random["effect"])
    draws = sweep.values[sweep.values["ranking"] == "random"].groupby("bin")["draw"].nunique()
    assert draws.tolist() == [3, 3]


def test_pairs_swept_together_equal_those_swept_alone(random_model, pieces):
    both = sweep_single_heads(random_model, pieces, [PAIR, OTHER], branches_per_pass=7).values
    for name, pair in (("pair 1", PAIR), ("pair 2", OTHER)):
        alone = sweep_single_heads(random_model, pieces, pair).values
        rows = both[both["example"] == name]
        keys = ["site", "direction", "layer", "head"]
        one, other = (frame.set_index(keys)["patched"].sort_index() for frame in (rows, alone))
        np.testing.assert_allclose(one, other, atol=5e-5)


def test_figures_show_every_site_and_direction(random_model, pieces):
    single = sweep_single_heads(random_model, pieces, PAIR)
    maps = [axes for axes in single.plot().axes if axes.images]
    assert len(maps) == 4
    shown = np.asarray(maps[0].images[0].get_array())
    chosen = (single.summary["site"] == "pattern") & (single.summary["direction"] == "denoise")
    expected = single.summary[chosen].pivot(index="layer", columns="head", values="effect")
    np.testing.assert_allclose(shown, expected.to_numpy())
    sets = sweep_ranking(random_model, pieces, PAIR, heads_of(LAYERS, HEADS), bins=[1, 2], draws=2)
    assert [axes.get_title(loc="left") for axes in sets.plot().axes] == [
        f"{direction} {site}"
        for site in ("attention patterns", "head outputs")
        for direction in ("Denoise", "Noise")
    ]


def test_model_is_as_it_was_after_a_sweep_that_fails(random_model, pieces, monkeypatch):
    random_model.train()
    configuration = random_model.config

    def failing(*args, **kwargs):
        assert random_model.config is not configuration
        raise MemoryError

    monkeypatch.setattr("mechdistill.patching.prompt_sweep.sweep_decisions", failing)
    with pytest.raises(MemoryError):
        sweep_single_heads(random_model, pieces, PAIR)
    assert random_model.config is configuration
    assert all(module.training for module in random_model.modules())


# --- what is refused -----------------------------------------------------------------------------


def test_prompts_of_unequal_length_are_shown_where_they_differ(random_model, pieces):
    uneven = replace(PAIR, corrupted=PAIR.clean.replace("sudden", "sudden, steady"))
    message = r"pair 1: the clean prompt has \d+ tokens, the corrupted one \d+.*words of as many"
    with pytest.raises(InputError, match=f"(?s){message}") as refusal:
        sweep_single_heads(random_model, pieces, uneven)
    assert "differ in 0 () against 2 (, |  steady)" in str(refusal.value)


WRONG = {
    "nothing corrupted": ({"corrupted": PAIR.clean}, "the same tokens"),
    "no foil": ({"foils": ()}, "no foil"),
    "empty target": ({"target": " "}, "empty target"),
    "foil is the target": ({"foils": " acute"}, "part at no token"),
    "foil goes on": ({"foils": " acute chronic"}, "part at no token"),
    "foils part apart": (
        {"target": " acute chronic", "foils": (" acute stable", " chronic")},
        "at different tokens.*' acute stable' at token",
    ),
    "no space": ({"target": "acute", "continuation": " So"}, "'So' runs into|runs into 'acute'"),
    "no prompt": ({"clean": ""}, "empty prompt"),
}


@pytest.mark.parametrize("case", WRONG)
def test_pair_that_cannot_be_patched_is_refused(random_model, pieces, case):
    changes, message = WRONG[case]
    with pytest.raises(InputError, match=f"(?s)pair 1.*({message})"):
        sweep_single_heads(random_model, pieces, replace(PAIR, **changes))


def test_ranking_of_other_heads_is_refused(random_model, pieces):
    for ranking, message in (
        ([], "no head"),
        ([(0, 0), (3, 0)], r"no head \(3, 0\): it has 3 layers of 4 heads"),
        ([(0, 4)], r"no head \(0, 4\)"),
        ([(0, 1), (1, 1), (0, 1)], r"head \(0, 1\) twice"),
    ):
        with pytest.raises(InputError, match=message):
            sweep_ranking(random_model, pieces, PAIR, ranking)
    with pytest.raises(InputError, match="at least 1"):
        sweep_ranking(random_model, pieces, PAIR, [(0, 0)], bins=[0])
    with pytest.raises(InputError, match="no pair"):
        sweep_single_heads(random_model, pieces, [])
    with pytest.raises(InputError, match="two pairs have the name"):
        sweep_single_heads(random_model, pieces, [replace(PAIR, name="a")] * 2)
