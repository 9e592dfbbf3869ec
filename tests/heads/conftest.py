"""A small label space, its tokenizer, a random model and traces in the world's format."""

from __future__ import annotations

import pytest
from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import draw_cases, example_of
from mechdistill.data.labels import Label, LabelSpace, Region
from mechdistill.data.tokenizer import build_tokenizer, encode_prompt, encode_trace
from mechdistill.data.world import WorldSettings
from mechdistill.models.loading import build_model
from mechdistill.traces.parse import Event, Mention, RefinePosition, Trace

CUES = ("acute", "chronic", "left")


@pytest.fixture(scope="session")
def space() -> LabelSpace:
    names = ("heart failure", "asthma", "gout", "otitis", "glaucoma")
    regions = tuple(
        Region(f"R{i}", name, tuple(f"{name} sign {k}" for k in range(3)))
        for i, name in enumerate(names)
    )
    labels = tuple(
        Label(f"{r.code}.{k}", f"{r.code}.{k} {cue} {r.name}", r.code, cue, f"{cue} {r.name}")
        for r in regions
        for k, cue in enumerate(CUES)
    )
    return LabelSpace(regions, labels, (), "invented for the tests")


@pytest.fixture(scope="session")
def tokenizer(space) -> PreTrainedTokenizerFast:
    return build_tokenizer(space)


@pytest.fixture(scope="session")
def examples(space):
    settings = WorldSettings(seed=0, groups_in_context=4, problems_min=1, problems_max=2)
    cases = draw_cases(space, settings, {"ranking": 10}, seed=0)
    return [example_of(case, name, split) for name, split, case in cases]


def templated_trace(example, space, tokenizer):
    """A trace of the reference, its positions read off the template and not from a parser."""
    prompt = encode_prompt(tokenizer, example.prompt)
    tokens = [*prompt, *encode_trace(tokenizer, example.reference)]
    words = [tokenizer.decode([token]) for token in tokens]
    start, end = len(prompt), words.index("Answer:")
    review = words.index("Review:")
    texts = {space.label(code).text: code for code in example.candidates}
    mentions, events, refine = [], [], []
    for p in range(start, review):
        if words[p].startswith("#"):
            events.append(Event("region", "reasoning", p, tokens[p + 1], (), "", (), -1))
    for p in range(review, end):
        clause = sum(w.startswith("#") for w in words[review : p + 1]) - 1
        if words[p] in texts:
            code = texts[words[p]]
            verdict = "kept" if code in example.gold else "rejected"
            mentions.append(Mention("label", code, p, p + 1, "late", clause, verdict))
        if words[p - 1] == "=>" or words[p - 2] == "=>":  # before the option, before its label
            kept, rejected = (
                tuple(m.start for m in mentions if m.verdict == v and m.start < p - 1)
                for v in ("kept", "rejected")
            )
            pair = sorted((example.gold[clause], example.near[clause]))
            names = ["(a)", "(b)"] if words[p - 1] == "=>" else [space.label(c).text for c in pair]
            ids = dict(zip(pair, tokenizer.convert_tokens_to_ids(names)))
            gold, near = ids[example.gold[clause]], ids[example.near[clause]]
            refine.append(RefinePosition(p - 1, gold, near, clause, kept, rejected))
    early = tuple(range(start - 1, review - 1))
    return Trace(
        example.example,
        example.split,
        tuple(tokens),
        start,
        example.reference,
        "ok",
        example.gold,
        early,
        review + 1,
        end,
        tuple(mentions),
        tuple(events),
        tuple(refine),
    )


@pytest.fixture(scope="session")
def traces(examples, space, tokenizer):
    """The templated reasoning as if a model had written it."""
    return [templated_trace(example, space, tokenizer) for example in examples]


@pytest.fixture(scope="session")
def model(tokenizer):
    """Random weights; grouped queries (two query heads a key head), three layers."""
    architecture = {
        "family": "llama",
        "hidden_size": 32,
        "layers": 3,
        "heads": 4,
        "kv_heads": 2,
        "intermediate_size": 48,
        "rope_theta": 100.0,
    }
    model = build_model(
        architecture,
        vocab_size=len(tokenizer),
        pad_id=tokenizer.pad_token_id,
        bos_id=tokenizer.bos_token_id,
        eos_id=tokenizer.eos_token_id,
        max_positions=256,
        seed=0,
    ).eval()
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:  # sharp rows, so that every variant has something to measure
            parameter.data *= 16 if "q_proj" in name or "k_proj" in name else 4
    return model
