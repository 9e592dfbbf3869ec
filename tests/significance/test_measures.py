import numpy as np
import pandas as pd
import pytest
from sacrebleu.metrics.bleu import BLEU
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from mechdistill.evaluate import bleu
from mechdistill.significance.bootstrap import draw, point_scores, resampled_scores
from mechdistill.significance.compare import Pair, Settings, compare
from mechdistill.significance.measures import (
    corpus_measures,
    corpus_table,
    document_measures,
    validation_scores,
)

LABELS = ["a", "b", "c", "d", "e"]
TRAINING = [["a"], ["a", "b"], ["b"], ["a"]]
GOLD = {"x": ["a", "b"], "y": ["c"], "z": ["b"]}
ANSWERS = {
    ("mech", 0): {"x": ["a", "b"], "y": ["d"], "z": ["b"]},
    ("mech", 1): {"x": ["a"], "y": ["c"], "z": []},
    ("vanilla", 0): {"x": ["b"], "y": [], "z": ["a"]},
}
TEXTS = {"x": "one two three four five", "y": "six seven eight nine ten", "z": "a b c d e f"}
SAID = {**TEXTS, "y": "six seven nine ten"}


@pytest.fixture(scope="module")
def predictions():
    return pd.DataFrame(
        [
            {"model": f"{method}-{seed}", "method": method, "seed": seed, "example": example}
            | {"gold": np.array(GOLD[example]), "predicted": np.array(answer, dtype=object)}
            for (method, seed), answers in ANSWERS.items()
            for example, answer in reversed(answers.items())  # order must not matter
        ]
    )


@pytest.fixture(scope="module")
def scores():
    rows = []
    for method, seed in ANSWERS:
        for i, example in enumerate(GOLD):
            counts = bleu.statistics(SAID[example], TEXTS[example])
            values = dict(zip(bleu.STATISTICS, counts, strict=True))
            values |= {"perplexity_nll": 2.0 * i, "n_tokens": 10.0, "focus": i / 10}
            if example != "y":
                values["loop"] = 1.0 + seed
            rows += [(method, seed, example, metric, value) for metric, value in values.items()]
    return pd.DataFrame(rows, columns=["method", "seed", "example", "metric", "value"])


@pytest.fixture(scope="module")
def corpus(predictions, scores):
    measures = corpus_measures(predictions, scores, LABELS, TRAINING, [1, 2])
    return {measure.name: measure for measure in measures}


def value(measure, model):
    return point_scores([measure.statistics[model]], measure.reduce)[0]


@pytest.mark.parametrize("model", ANSWERS)
def test_f1_variants_agree_with_sklearn(corpus, model):
    binarizer = MultiLabelBinarizer(classes=LABELS)
    gold = binarizer.fit_transform(GOLD.values())
    guess = binarizer.fit_transform(ANSWERS[model].values())

    def sklearn_macro(among):
        columns = [LABELS.index(label) for label in among]
        return f1_score(gold, guess, average="macro", labels=columns, zero_division=0)

    micro = f1_score(gold, guess, average="micro", zero_division=0)
    assert value(corpus["micro_f1"], model) == pytest.approx(micro)
    assert value(corpus["macro_f1_all"], model) == pytest.approx(sklearn_macro(LABELS))
    assert value(corpus["macro_f1_gold_present"], model) == pytest.approx(sklearn_macro("abc"))
    assert value(corpus["macro_f1_seen"], model) == pytest.approx(sklearn_macro("ab"))
    assert value(corpus["macro_f1_unseen"], model) == pytest.approx(sklearn_macro("c"))


def test_interval_of_macro_f1_contains_its_point(corpus):
    """Three documents with three rare labels: most resamples lack one of them."""
    measure = corpus["macro_f1_gold_present"]
    resamples = draw(3, 1, 500, seed=0)
    scores = resampled_scores([measure.statistics["mech", 0]], measure.reduce, resamples)
    low, high = np.percentile(scores, [2.5, 97.5])

    assert low < value(measure, ("mech", 0)) < high
    assert scores.mean() == pytest.approx(value(measure, ("mech", 0)), abs=0.05)


def test_f1_by_training_frequency_agrees_with_sklearn(corpus):
    """a 3, b 2 training documents, c, d, e none."""
    binarizer = MultiLabelBinarizer(classes=LABELS)
    gold = binarizer.fit_transform(GOLD.values())
    guess = binarizer.fit_transform(ANSWERS["mech", 1].values())
    for group, labels in (("head", "ab"), ("tail", "cde")):
        columns = [LABELS.index(label) for label in labels]
        micro = f1_score(gold, guess, average="micro", labels=columns, zero_division=0)
        assert value(corpus[f"micro_f1_{group}"], ("mech", 1)) == pytest.approx(micro)
        known = [c for c in columns if gold[:, c].any()]
        macro = f1_score(gold, guess, average="macro", labels=known, zero_division=0)
        assert value(corpus[f"macro_f1_{group}"], ("mech", 1)) == pytest.approx(macro)
    assert "micro_f1_torso" not in corpus


def test_frequencies_are_a_family_of_their_own(corpus):
    chosen = [corpus[name] for name in ("micro_f1", "psp_at_1", "micro_f1_head", "macro_f1_tail")]
    pairs = [Pair("mech", "vanilla", "baseline")]
    found = compare(chosen, pairs, "vanilla", Settings(50, 0.05, 0)).set_index("metric")

    assert found["family"].to_dict() == {
        "micro_f1": "baseline/table",
        "psp_at_1": "baseline/other",
        "micro_f1_head": "baseline/frequency",
        "macro_f1_tail": "baseline/frequency",
    }
    assert found.loc["psp_at_1", "family_size"] == 1


def test_perplexity_is_pooled_over_tokens(corpus):
    assert value(corpus["perplexity"], ("mech", 0)) == pytest.approx(np.exp(6 / 30))


def test_bleu_is_the_score_of_the_whole_corpus(corpus):
    expected = BLEU().corpus_score(list(SAID.values()), [list(TEXTS.values())]).score

    assert value(corpus["bleu_corpus"], ("vanilla", 0)) == pytest.approx(expected)


def test_psp_is_a_ratio_of_sums_between_zero_and_one(corpus):
    perfect_but_one = value(corpus["psp_at_1"], ("mech", 0))

    assert 0 < perfect_but_one < 1
    assert value(corpus["psp_at_1"], ("vanilla", 0)) < perfect_but_one


def test_counts_behind_a_score_are_no_scores(scores):
    measures = {measure.name: measure for measure in document_measures(scores)}

    assert set(measures) == {"focus", "loop"}
    assert measures["loop"].values["mech", 1].tolist() == pytest.approx([2, np.nan, 2], nan_ok=True)


def test_table_gives_each_model_its_value_and_number_of_documents(corpus, scores):
    names = {("mech", 0): "mech-0", ("mech", 1): "mech-1", ("vanilla", 0): "vanilla-0"}
    measures = [*corpus.values(), *document_measures(scores)]
    table = corpus_table(measures, names).set_index(["model", "metric"])

    assert table.loc[("mech-1", "loop"), ["value", "n_documents"]].tolist() == [2.0, 2]
    assert table.loc[("mech-0", "focus"), "value"] == pytest.approx(0.1)
    assert table.loc[("mech-0", "micro_f1"), "n_documents"] == 3


def test_validation_score_is_micro_f1_over_all_seeds(predictions, corpus):
    found = validation_scores(predictions, LABELS, ["mech", "vanilla"])

    by_seed = [value(corpus["micro_f1"], ("mech", seed)) for seed in (0, 1)]
    assert found["mech"] == pytest.approx(np.mean(by_seed))
    assert found["vanilla"] < found["mech"]
