"""The table of events against a whole forward pass an event."""

import pytest
import torch

from mechdistill.traces.decision_events import decision_events
from mechdistill.traces.event_table import COLUMNS, event_table
from tests.small_space import small_model


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.set_num_threads(1)
    return small_model(tokenizer)


@pytest.fixture(scope="module")
def traces(examples, parse):
    """Two of unequal length, one without an event between them."""
    written = [f"{examples[0].reference} <eos>", ". <eos>", examples[2].reference]
    return [parse(example, text) for example, text in zip(examples, written)]


@pytest.fixture(scope="module")
def table(model, traces, examples, tokenizer, space):
    return event_table(model, traces, examples, tokenizer, space, batch_size=2)


def test_margins_are_those_of_one_plain_pass_a_trace(
    table, model, traces, examples, tokenizer, space
) -> None:
    expected = []
    for trace, example in zip(traces, examples):
        with torch.no_grad():
            logits = model(torch.tensor([trace.tokens])).logits[0]
        for event in decision_events(trace, example, tokenizer, space):
            rival = max(float(logits[event.query, foil]) for foil in event.foils)
            expected.append(float(logits[event.query, event.target]) - rival)
    assert len(expected) > 10
    assert list(table["margin"]) == pytest.approx(expected, abs=1e-5)


def test_rows_are_the_events_in_the_order_of_traces(
    table, traces, examples, tokenizer, space
) -> None:
    found = [
        (trace.example, event.kind, event.query, event.foil_codes)
        for trace, example in zip(traces, examples)
        for event in decision_events(trace, example, tokenizer, space)
    ]
    rows = table[["example", "kind", "query", "foil_codes"]].itertuples(index=False, name=None)
    assert list(rows) == found
    assert tuple(table) == COLUMNS


def test_traces_without_events_give_a_table_without_rows(
    model, traces, examples, tokenizer, space
) -> None:
    empty = event_table(model, traces[1:2], examples, tokenizer, space, batch_size=2)
    assert tuple(empty) == COLUMNS and empty.empty
