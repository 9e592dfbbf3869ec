from mechdistill.evaluate.predictions import normalise, prediction_table


def test_repeats_keep_their_first_place_and_strangers_are_counted_once():
    assert normalise(["b", "x", "a", "b", "x", "y"], {"a", "b"}) == (("b", "a"), 2)


def test_an_unparsed_trace_keeps_its_row_as_an_empty_prediction(examples, parse, space):
    unfinished = parse(examples[0], "gout", finished=False)
    codes = [label.code for label in space.labels]
    fine = [parse(example, example.reference) for example in examples[1:3]]
    table = prediction_table([*fine, unfinished], examples[:3], codes, "m", "mech", 0)

    assert table["example"].tolist() == [example.example for example in examples[:3]]
    assert table["predicted"][0] == []
    assert table["status"].tolist() == ["unfinished", "ok", "ok"]
    assert table["gold"][1] == list(examples[1].gold)
    assert sorted(table["predicted"][1]) == sorted(examples[1].gold)
