"""An invented label space of five regions, and a small model that reads sub-word tokens."""

from typing import Any

from transformers import PreTrainedTokenizerFast

from mechdistill.data.labels import Label, LabelSpace, Region
from mechdistill.models.loading import build_model

NAMES = ("heart failure", "asthma", "gout", "otitis", "glaucoma")
CUES = ("acute", "chronic", "left")


def small_space() -> LabelSpace:
    """Three findings and three labels a region."""
    regions = tuple(
        Region(f"R{i}", name, tuple(f"{name} sign {k}" for k in range(3)))
        for i, name in enumerate(NAMES)
    )
    labels = tuple(
        Label(f"{r.code}.{k}", f"{r.code}.{k} {cue} {r.name}", r.code, cue, f"{cue} {r.name}")
        for r in regions
        for k, cue in enumerate(CUES)
    )
    return LabelSpace(regions, labels, (), "invented for the tests")


def small_model(tokenizer: PreTrainedTokenizerFast) -> Any:
    """Random weights, two layers of four heads; long enough for sub-word prompts."""
    return build_model(
        {
            "family": "llama",
            "hidden_size": 32,
            "layers": 2,
            "heads": 4,
            "kv_heads": 2,
            "intermediate_size": 32,
            "rope_theta": 100.0,
        },
        vocab_size=len(tokenizer),
        pad_id=tokenizer.pad_token_id,
        bos_id=tokenizer.bos_token_id,
        eos_id=tokenizer.eos_token_id,
        max_positions=1024,
        seed=0,
    ).eval()
