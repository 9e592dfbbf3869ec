from dataclasses import replace

import pytest
import torch

from mechdistill.evaluate.margins import forced_scores


@pytest.fixture(scope="module")
def scored(model, traces, tokenizer):
    frame = forced_scores(model, traces, tokenizer.pad_token_id, batch_size=5)
    return frame.pivot(index="example", columns="metric", values="value")


def test_likelihood_is_that_of_the_trace_alone_without_padding(model, traces, scored):
    for trace in traces[:4]:
        with torch.no_grad():
            logits = model(torch.tensor([trace.tokens])).logits[0].double().log_softmax(-1)
        nll = -sum(
            float(logits[p - 1, trace.tokens[p]])
            for p in range(trace.prompt_length, len(trace.tokens))
        )

        assert scored.loc[trace.example, "perplexity_nll"] == pytest.approx(nll, rel=1e-5)
        assert scored.loc[trace.example, "n_tokens"] == len(trace.tokens) - trace.prompt_length


@pytest.mark.parametrize(
    ("metric", "kind", "segment"),
    [
        ("region", "region", "reasoning"),
        ("within", "within", "reasoning"),
        ("departure", "departure", "reasoning"),
        ("departure_answer", "departure", "answer"),
    ],
)
def test_margin_is_the_lead_over_the_best_rival(model, traces, scored, metric, kind, segment):
    for trace in traces[:4]:
        with torch.no_grad():
            logits = model(torch.tensor([trace.tokens])).logits[0]
        margins = [
            min(float(logits[e.query, e.target] - logits[e.query, foil]) for foil in e.foils)
            for e in trace.events
            if (e.kind, e.segment) == (kind, segment)
        ]
        right = [margin > 0 for margin in margins]

        assert scored.loc[trace.example, f"margin_{metric}"] == pytest.approx(
            sum(margins) / len(margins), abs=1e-4
        )
        assert scored.loc[trace.example, f"accuracy_{metric}"] == sum(right) / len(right)


def test_an_event_without_rivals_is_no_decision(model, traces, tokenizer):
    alone = replace(traces[0], events=tuple(replace(e, foils=()) for e in traces[0].events))
    frame = forced_scores(model, [alone], tokenizer.pad_token_id, batch_size=1)

    assert set(frame["metric"]) == {"perplexity_nll", "n_tokens"}
