import pytest

from mechdistill.evaluate.mechanism import PoolSettings, mechanism_scores
from mechdistill.heads.find import find_pools

SETTINGS = PoolSettings(size=2, temperature=1.0, minimum_keys=8, batch_size=6)


def found_pools(model, traces, examples, space, tokenizer):
    return find_pools(
        model,
        traces,
        examples,
        space,
        tokenizer,
        name="given",
        size=SETTINGS.size,
        temperature=SETTINGS.temperature,
        minimum_keys=SETTINGS.minimum_keys,
        batch_size=SETTINGS.batch_size,
    )


def test_heads_found_anew_stand_beside_those_given(model, traces, examples, space, tokenizer):
    """In a model that has not changed since its pools were found, both readings agree."""
    ranking, test = traces[:8], traces[8:]
    pools = found_pools(model, ranking, examples, space, tokenizer)
    assert len(pools.phase1) + len(pools.phase2) > 0

    frame = mechanism_scores(
        model, test, ranking, examples, space, tokenizer, pools, SETTINGS
    ).pivot(index="example", columns="metric", values="value")
    given = [name for name in frame.columns if not name.endswith("_found")]

    assert set(frame.columns) == {*given, *(f"{name}_found" for name in given)}
    for name in given:
        assert frame[name].tolist() == pytest.approx(frame[f"{name}_found"].tolist())
    assert set(frame.index) == {trace.example for trace in test}
