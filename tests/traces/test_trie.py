"""Hand-made tries, and any trie against a comparison of every pair of paths."""

from hypothesis import given
from hypothesis import strategies as st

from mechdistill.traces.decision_events import Alternative, events_of_path
from mechdistill.traces.trie import Trie, forks

END = 9
token = st.integers(0, 3)


def left_at(paths, taken):
    return {fork.depth: fork.left for fork in forks(Trie.of(paths), taken)}


def test_shared_prefix_parts_at_the_first_other_token() -> None:
    paths = {"a": [1, 2, 3, END], "b": [1, 2, 4, END], "c": [5, END]}
    assert left_at(paths, paths["a"]) == {0: {5: ("c",)}, 2: {4: ("b",)}}


def test_a_label_that_begins_with_another_leaves_it_behind_the_shorter_one() -> None:
    paths = {"short": [1, 2, END], "long": [1, 2, 3, END]}
    assert left_at(paths, paths["long"]) == {2: {END: ("short",)}}
    assert left_at(paths, paths["short"]) == {2: {3: ("long",)}}


def test_one_token_labels_part_at_once() -> None:
    paths = {"a": [1, END], "b": [2, END], "c": [3, END]}
    assert left_at(paths, paths["b"]) == {0: {1: ("a",), 3: ("c",)}}


def test_alternatives_that_go_on_with_one_token_leave_together() -> None:
    paths = {"a": [1, END], "b": [2, 3, END], "c": [2, 4, END]}
    assert left_at(paths, paths["a"]) == {0: {2: ("b", "c")}}


def test_equal_paths_never_part_and_an_unknown_token_ends_the_walk() -> None:
    paths = {"a": [1, 2, END], "same": [1, 2, END]}
    assert left_at(paths, paths["a"]) == {}
    assert left_at(paths, [1, 7, 2, END]) == {1: {2: ("a", "same")}}


def slow_events(paths, taken, alternatives, picked):
    """Kind and place from the length of the common beginning of each pair of paths."""
    found = {}
    for key, path in paths.items():
        shared = 0
        while shared < min(len(path), len(taken)) and path[shared] == taken[shared]:
            shared += 1
        if shared == len(path) or shared == len(taken):
            continue
        other, own = alternatives[key], alternatives[picked].region
        kinds = ["region" if other.region != own else "within"] if other.in_context else []
        kinds += ["departure"] if other.near_miss and other.region == own else []
        for kind in kinds:
            foils, codes = found.setdefault((shared, kind), (set(), set()))
            foils.add(path[shared])
            codes.add(key)
    return {at: (tuple(sorted(foils)), tuple(sorted(c))) for at, (foils, c) in found.items()}


@given(
    st.lists(
        st.tuples(
            st.lists(token, min_size=1, max_size=4),
            st.sampled_from("AB"),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=7,
    ),
    st.lists(token, max_size=3),
)
def test_events_are_those_of_every_pair_of_paths(drawn, behind) -> None:
    paths = {str(i): [*path, END, *behind] for i, (path, *_) in enumerate(drawn)}
    known = {str(i): Alternative(*rest) for i, (_, *rest) in enumerate(drawn)}
    known["0"] = Alternative(known["0"].region, True)
    found = list(events_of_path(paths, paths["0"], known, "0"))
    assert [(at, kind) for at, kind, *_ in found] == sorted(
        ((at, kind) for at, kind, *_ in found),
        key=lambda e: (e[0], ("region", "within", "departure").index(e[1])),
    )
    expected = slow_events(paths, paths["0"], known, "0")
    assert {(at, kind): rest for at, kind, *rest in map(list, found)} == {
        at: list(rest) for at, rest in expected.items()
    }
