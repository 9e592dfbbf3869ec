import numpy as np
import pytest

from mechdistill.data.frame import Frame
from mechdistill.data.world import WorldSettings
from mechdistill.traces.lessons import draw_lessons
from tests.small_tokenizers import byte_level

SETTINGS = WorldSettings(seed=0, groups_in_context=4, problems_min=1, problems_max=2)


@pytest.fixture(params=["whole words", "pieces"])
def any_tokenizer(request, tokenizer, examples):
    if request.param == "whole words":
        return tokenizer
    return byte_level([text for e in examples for text in (e.prompt, e.reference)], size=420)


def test_a_region_and_an_option_of_each_problem_weigh_more(any_tokenizer, space) -> None:
    frame = Frame("Note: ", " Think:") if any_tokenizer.chat_template else Frame()
    rng = np.random.default_rng(0)
    lessons = draw_lessons(space, SETTINGS, any_tokenizer, frame, (), 7.0, 12, rng)
    for prompt, trace, weights in lessons:
        text = any_tokenizer.decode(trace)
        problems = text.partition("Review:")[0].count("#")
        assert len(weights) == len(trace)
        assert any_tokenizer.decode(prompt).strip().endswith(frame.behind.strip() or "Reasoning:")
        heavy = [position for position, weight in enumerate(weights) if weight != 1.0]
        assert len(heavy) == 2 * problems
        for number, position in enumerate(heavy):
            before = any_tokenizer.decode(trace[:position]).rstrip()
            # the first tokens that regions share, or an option's bracket, decide nothing
            wanted = "#" if number < problems else "=>"
            assert wanted in before.split(" ")[-1] + before.split(" ")[-2]


def test_lessons_are_a_function_of_the_generator(tokenizer, space) -> None:
    one, again, other = (
        draw_lessons(space, SETTINGS, tokenizer, Frame(), (), 2.0, 3, np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    assert one == again
    assert one != other
