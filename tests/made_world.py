"""The world of the invented dictionary, and notes of it."""

from pathlib import Path

from mechdistill.data.dictd import read_dictionary
from mechdistill.data.foldoc import Task, read_articles, task_graph
from mechdistill.data.foldoc_labels import Sizes, build_foldoc_space
from mechdistill.data.labels import LabelSpace
from mechdistill.data.world import WorldSettings
from tests.made_dictionary import write_made_dictionary

SETTINGS = WorldSettings(seed=7, groups_in_context=4, problems_min=1, problems_max=2)
COUNTS = {"training": 80, "validation": 20, "ranking": 20, "patching": 20, "test": 20}


def made_space(folder: Path, task: Task) -> LabelSpace:
    """Eight regions of four labels; the dictionary is written into the folder."""
    sha256 = write_made_dictionary(folder)
    articles = read_articles(read_dictionary(folder, "foldoc", sha256))
    graph = task_graph(articles, task, least_words=20)
    return build_foldoc_space(7, graph, task, Sizes(8, 4, 4, 2), 2, "an invented dictionary")
