"""A reading that forgets rows on the way says of them what one that keeps them says."""

import torch

from mechdistill.heads.places import all_places
from mechdistill.heads.reading import read


def test_rows_are_shown_in_the_pass_and_then_forgotten(model, traces, examples, space, tokenizer):
    places = all_places(traces[:3], examples, space, tokenizer)
    kept = read(model, places)
    seen = []

    def at_layer(reading, layer):
        rows, visible = reading.early_rows(layer)
        whole, expected = kept.early_rows(layer)
        assert torch.equal(rows, whole) and torch.equal(visible, expected)
        assert torch.equal(reading.anchor("context", layer), kept.anchor("context", layer))
        seen.append(layer)

    shown = read(model, places, at_layer=at_layer)
    assert seen == shown.layers == kept.layers
    assert torch.equal(shown.h_final, kept.h_final)
    for layer in shown.layers:
        assert shown.records[layer].rows.numel() == 0
        for name in ("rows_at_mentions", "cue_mass", "refine_writes", "refine_queries"):
            one, other = getattr(shown, name)(layer), getattr(kept, name)(layer)
            assert torch.equal(one.nan_to_num(-1), other.nan_to_num(-1)), name
