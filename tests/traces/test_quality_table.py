from dataclasses import replace

import pytest

from mechdistill.traces.quality import trace_quality
from mechdistill.traces.quality_table import quality_table
from mechdistill.traces.reference import reference_traces

END = " <eos>"


def test_references_are_what_a_perfect_model_writes(examples, parse, tokenizer, space) -> None:
    expected = [parse(example, example.reference + END) for example in examples]
    assert reference_traces(examples, tokenizer, space, early_tokens=30) == expected


def test_each_split_is_described_on_its_own(examples, parse, tokenizer, space) -> None:
    training = [example for example in examples if example.split == "training"]
    written = [parse(example, "gout ." + END) for example in training]
    written += reference_traces(
        [e for e in examples if e.split == "ranking"], tokenizer, space, early_tokens=30
    )
    table = quality_table(examples, written, "zero-shot", space).set_index("split")
    assert list(table["notes"]) == [30, 10]
    weak, perfect = table.loc["training"], table.loc["ranking"]
    assert (weak["micro_f1"], weak["parsed"], weak["region_events"]) == (0, 0, 0)
    assert weak["status"] == "no answer: 30"
    for name, value in trace_quality(training, written[:30], space).items():
        assert weak[name] == value
    assert (perfect["micro_f1"], perfect["parsed"]) == (1, 1)
    assert perfect["refine_positions"] == 2 * perfect["within_events"]


def test_a_code_named_without_the_form_counts_as_named(examples, parse, space) -> None:
    example = next(e for e in examples if len(e.gold) == 1)
    trace = replace(parse(example, "gout" + END), text=f"It is {example.gold[0]}, not R1.77.")
    [row] = quality_table([example], [trace], "zero-shot", space).to_dict("records")
    assert row["micro_f1"] == 0
    assert row["micro_f1_named"] == pytest.approx(1.0)
