import pytest
import torch

from mechdistill.evaluate import mechanism
from mechdistill.evaluate.mechanism import PoolSettings, mechanism_scores
from mechdistill.heads.pools import Pool, Pools
from mechdistill.heads.readout import read_mechanisms

SETTINGS = PoolSettings(size=2, temperature=1.0, minimum_keys=8, batch_size=6)


def pools_of(layer):
    pools = [
        Pool(phase, torch.tensor([layer, layer]), torch.tensor([0, 1]), torch.tensor([0.7, 0.3]))
        for phase in (1, 2)
    ]
    return Pools("any", *pools, margin_std=1.0)


def test_heads_found_anew_stand_beside_those_given(
    monkeypatch, model, traces, examples, space, tokenizer
):
    """Given pools lie in layer 0, those found anew, on the ranking traces, in layer 1."""
    ranking, test = traces[:8], traces[8:]
    seen = {}

    def find(model, traces, *args, **settings):
        seen.update(settings, traces=traces)
        return pools_of(1)

    monkeypatch.setattr(mechanism, "find_pools", find)
    scores = mechanism_scores(
        model, test, ranking, examples, space, tokenizer, pools_of(0), SETTINGS
    ).set_index(["example", "metric"])["value"]

    assert seen["traces"] == ranking
    assert seen["size"] == SETTINGS.size
    for layer, suffix in ((0, ""), (1, "_found")):
        alone = read_mechanisms(
            model,
            test,
            examples,
            space,
            tokenizer,
            pools_of(layer),
            minimum_keys=SETTINGS.minimum_keys,
            batch_size=SETTINGS.batch_size,
        )
        assert {"sharp", "align", "loop", "help"} <= set(alone["metric"])
        for row in alone.itertuples():
            assert scores[row.example, row.metric + suffix] == pytest.approx(row.value)
