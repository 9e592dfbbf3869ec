from __future__ import annotations

import pytest
import torch

from mechdistill.artifacts import read_json, write_json
from mechdistill.errors import InputError
from mechdistill.models.loading import build_model, load_model, save_model
from mechdistill.models.tap import IMPLEMENTATION

ARCHITECTURE = {
    "family": "llama",
    "hidden_size": 16,
    "layers": 2,
    "heads": 4,
    "kv_heads": 2,
    "intermediate_size": 24,
    "rope_theta": 100.0,
}


def build(seed=0, **changes):
    return build_model(
        {**ARCHITECTURE, **changes},
        vocab_size=19,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        max_positions=64,
        seed=seed,
    )


def test_model_has_the_architecture_of_the_parameters():
    config = build().config
    assert (config.hidden_size, config.num_hidden_layers) == (16, 2)
    assert (config.num_attention_heads, config.num_key_value_heads) == (4, 2)
    assert config.rope_parameters["rope_theta"] == 100.0
    assert config._attn_implementation == IMPLEMENTATION


def test_heads_may_be_wider_than_their_share_of_the_hidden_size():
    attention = build(head_dim=6).model.layers[0].self_attn
    assert attention.head_dim == 6
    assert attention.o_proj.weight.shape == (16, 24)


def test_seed_decides_the_weights_and_leaves_the_global_state_alone():
    state = torch.get_rng_state()
    one, two, other = build(0), build(0), build(1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one.lm_head.weight, two.lm_head.weight)
    assert not torch.equal(one.lm_head.weight, other.lm_head.weight)


def test_saved_model_comes_back_the_same(tmp_path):
    model = build().eval()
    paths = tmp_path / "model.safetensors", tmp_path / "config.json"
    save_model(model, *paths)
    loaded = load_model(*paths)
    ids = torch.arange(10)[None]
    assert torch.equal(loaded(ids).logits, model(ids).logits)
    assert loaded.config._attn_implementation == IMPLEMENTATION
    assert not loaded.training
    save_model(loaded, tmp_path / "again.safetensors", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == paths[1].read_bytes()
    assert (tmp_path / "again.safetensors").read_bytes() == paths[0].read_bytes()


def test_weights_of_another_architecture_are_refused(tmp_path):
    save_model(build(), tmp_path / "a.safetensors", tmp_path / "a.json")
    save_model(build(hidden_size=32), tmp_path / "b.safetensors", tmp_path / "b.json")
    with pytest.raises(InputError, match=r"a\.safetensors does not fit"):
        load_model(tmp_path / "a.safetensors", tmp_path / "b.json")


@pytest.mark.parametrize("wrong", [{"model_type": None}, {"num_attention_heads": "x"}, None])
def test_configuration_with_wrong_content_is_named(tmp_path, wrong):
    save_model(build(), tmp_path / "a.safetensors", tmp_path / "a.json")
    content = {} if wrong is None else {**read_json(tmp_path / "a.json"), **wrong}
    write_json(tmp_path / "a.json", content)
    with pytest.raises(InputError, match=r"a\.json is no configuration"):
        load_model(tmp_path / "a.safetensors", tmp_path / "a.json")


def test_unknown_family_is_refused():
    with pytest.raises(InputError, match="'perceiver' is not known"):
        build(family="perceiver")
