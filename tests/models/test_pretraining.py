"""The teacher's training: its loss, its stream of notes, and going on from a checkpoint."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from mechdistill.data.labels import Label, LabelSpace, Region
from mechdistill.data.tokenizer import build_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.errors import InputError
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.loading import build_model
from mechdistill.models.pretraining import (
    TeacherTraining,
    Text,
    add_gradients,
    draw_texts,
    require_score,
    summed_trace_loss,
    train_teacher,
)

ARCHITECTURE = {
    "family": "llama",
    "hidden_size": 16,
    "layers": 2,
    "heads": 2,
    "kv_heads": 1,
    "head_dim": 8,
    "intermediate_size": 32,
    "rope_theta": 1000.0,
}
TRAINING = TeacherTraining(
    steps=8,
    batch_size=6,
    learning_rate=0.02,
    adamw_learning_rate=0.01,
    warmup_steps=2,
    clip=1.0,
    listing_share=0.5,
    validate_every=3,
    checkpoint_every=2,
    target_micro_f1=0.0,
)


@pytest.fixture(scope="module")
def world():
    regions = tuple(
        Region(f"R{i}", name, (f"{name} sign", f"{name} test"))
        for i, name in enumerate(("heart failure", "asthma", "gout", "migraine", "cystitis"))
    )
    labels = tuple(
        Label(f"{r.code}.{cue}", f"{r.code}.{cue} {cue} {r.name}", r.code, cue, cue)
        for r in regions
        for cue in ("acute", "chronic", "left")
    )
    space = LabelSpace(regions, labels, (), "invented for the tests")
    settings = WorldSettings(seed=0, groups_in_context=4, problems_min=1, problems_max=2)
    return space, settings, build_tokenizer(space)


@pytest.fixture
def model(world):
    _, _, tokenizer = world
    return build_model(
        ARCHITECTURE,
        vocab_size=len(tokenizer),
        pad_id=0,
        bos_id=1,
        eos_id=2,
        max_positions=256,
        seed=3,
    )


@pytest.fixture
def draw(world):
    return partial(draw_texts, *world, (), TRAINING.batch_size, TRAINING.listing_share)


def slow_loss(model, texts: list[Text]) -> torch.Tensor:
    """Minus the log-probability of each trace token, one text at a time, summed."""
    total = torch.zeros(())
    for text in texts:
        tokens = [*text.prompt, *text.trace]
        logits = model(torch.tensor([tokens]), attention_mask=torch.ones(1, len(tokens))).logits[0]
        log_probabilities = logits.log_softmax(-1)
        for position in range(len(text.prompt), len(tokens)):
            total = total - log_probabilities[position - 1, tokens[position]]
    return total


def test_loss_is_that_of_a_slow_loop_over_single_texts(model, draw) -> None:
    texts = draw(np.random.default_rng(0))
    expected = slow_loss(model, texts)
    torch.testing.assert_close(summed_trace_loss(model, texts), expected)


def test_gradients_are_those_of_the_mean_over_all_trace_tokens(model, draw) -> None:
    texts = [text for seed in range(5) for text in draw(np.random.default_rng(seed))]
    count = sum(len(text.trace) for text in texts)
    slow = copy.deepcopy(model)
    expected = slow_loss(slow, texts) / count
    expected.backward()
    assert add_gradients(model, texts) == pytest.approx(expected.item(), rel=1e-5)
    for ours, theirs in zip(model.parameters(), slow.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


def test_a_batch_is_notes_and_listings_in_the_share_asked_for(world, draw) -> None:
    _, _, tokenizer = world
    texts = draw(np.random.default_rng(0))
    last = [tokenizer.convert_ids_to_tokens(text.prompt[-1]) for text in texts]
    assert last == ["Listing:"] * 3 + ["Reasoning:"] * 3
    assert all(text.trace[-1] == tokenizer.eos_token_id for text in texts)
    assert draw(np.random.default_rng(0)) == texts
    assert draw(np.random.default_rng(1)) != texts


class Killed(Exception):
    pass


def run(model, draw, path: Path, killed_at: int | None = None) -> pd.DataFrame:
    """Train; `killed_at` counts drawn batches, as a kill amid a step would."""
    drawn = []

    def counting(rng):
        drawn.append(1)
        if len(drawn) == killed_at:
            raise Killed
        return draw(rng)

    return train_teacher(
        model,
        counting,
        TRAINING,
        Checkpoint(path, "this run"),
        lambda model: {"micro_f1": model.lm_head.weight.sum().item()},
        seed=0,
    )


def test_a_killed_training_ends_in_the_same_weights_and_curve(model, draw, tmp_path: Path) -> None:
    killed, whole = copy.deepcopy(model), copy.deepcopy(model)
    expected = run(whole, draw, tmp_path / "whole")
    with pytest.raises(Killed):
        run(killed, draw, tmp_path / "killed", killed_at=6)  # five steps done, four of them saved
    resumed = copy.deepcopy(model)
    curve = run(resumed, draw, tmp_path / "killed")
    pd.testing.assert_frame_equal(curve, expected, check_exact=True)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_the_curve_has_loss_and_scores_at_each_validation(model, draw, tmp_path: Path) -> None:
    curve = run(model, draw, tmp_path / "run")
    assert list(curve["step"]) == [3, 3, 6, 6, 8, 8]
    assert list(curve["metric"]) == ["loss", "micro_f1"] * 3
    losses = curve.loc[curve["metric"] == "loss", "value"]
    assert losses.is_monotonic_decreasing


def test_a_teacher_below_its_target_is_refused_with_both_numbers() -> None:
    curve = pd.DataFrame({"step": [1, 2], "metric": "micro_f1", "value": [0.95, 0.6]})
    require_score(curve, "micro_f1", "teacher.training", 0.6)
    with pytest.raises(InputError, match=r"0\.600.*0\.9"):
        require_score(curve, "micro_f1", "teacher.training", 0.9)
