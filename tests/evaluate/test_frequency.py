import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.evaluate.frequency import GROUPS, frequency_groups, group_sizes, training_uses

USES = st.dictionaries(st.sampled_from("abcdefghi"), st.integers(0, 4), min_size=1)


def slow_groups(uses):
    """Walk down the order; a label of the same frequency as the one before stays in its group."""
    order = sorted(uses, key=lambda label: -uses[label])
    found, before = {}, None
    for place, label in enumerate(order):
        third = GROUPS[3 * place // len(order)]
        group = found[before] if before and uses[before] == uses[label] else third
        found[label] = "tail" if uses[label] == 0 else group
        before = label if uses[label] else None
    return found


@given(USES)
def test_groups_are_thirds_of_the_order_that_part_no_equals(uses):
    masks = frequency_groups(uses)
    found = {
        label: group
        for group in GROUPS
        for label, own in zip(uses, masks[group], strict=True)
        if own
    }

    assert found == slow_groups(uses)


def test_labels_of_one_frequency_are_a_head_alone():
    masks = frequency_groups({"a": 3, "b": 3, "c": 3})

    assert masks["head"].all()
    assert not masks["torso"].any()
    assert not masks["tail"].any()


def test_labels_never_trained_on_are_in_the_tail():
    assert frequency_groups({"a": 0, "b": 0})["tail"].all()


def test_uses_count_training_documents_over_the_whole_space():
    assert training_uses([("a", "b"), ("a",)], ["a", "b", "c"]) == {"a": 2, "b": 1, "c": 0}


def test_a_label_outside_the_space_is_refused():
    with pytest.raises(KeyError):
        training_uses([("x",)], ["a"])


def test_sizes_say_what_a_group_holds():
    sizes = group_sizes({"a": 9, "b": 1, "c": 4}, [["a"], ["a", "b"]])

    assert sizes["head"] == {
        "labels": 1,
        "gold_in_test": 1,
        "least_training_notes": 9,
        "most_training_notes": 9,
    }
    assert sizes["torso"]["gold_in_test"] == 0
    assert sizes["tail"]["most_training_notes"] == 1
