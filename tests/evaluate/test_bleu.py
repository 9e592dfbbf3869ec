import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from mechdistill.evaluate.bleu import corpus_bleu, sentence_bleu, signature, statistics

from .cases import agrees, cases


def summed(inputs):
    return sum(
        statistics(hypothesis, reference)
        for hypothesis, reference in zip(inputs["hyp"], inputs["ref"], strict=True)
    )


@pytest.mark.parametrize("case", cases("bleu4_corpus"))
def test_worked_case_of_corpus_bleu(case):
    defaults = {"smooth_method": "exp", "tokenize": "13a", "effective_order": False}
    if {key: case["params"][key] for key in defaults} == defaults:
        assert agrees(corpus_bleu(summed(case["inputs"])), case, "score")
    elif case["params"]["effective_order"]:
        (hypothesis,), (reference,) = case["inputs"]["hyp"], case["inputs"]["ref"]
        assert agrees(sentence_bleu(hypothesis, reference), case, "score")
    else:  # settings that are not ours give another number
        assert not agrees(corpus_bleu(summed(case["inputs"])), case, "score")


@pytest.mark.parametrize("case", cases("bleu4_sentence_mean"))
def test_worked_case_of_sentence_bleu(case):
    pairs = zip(case["inputs"]["hyp"], case["inputs"]["ref"], strict=True)
    scores = [sentence_bleu(*pair) for pair in pairs]

    assert agrees(scores, case, "per_example")
    assert agrees(np.mean(scores), case, "mean")
    assert np.mean(scores) != pytest.approx(corpus_bleu(summed(case["inputs"])), abs=1)


def test_summed_statistics_give_sacrebleus_own_corpus_score():
    hypotheses = ["a b c d e f", "a b c d", "x y"]
    references = ["a b c d f e", "a b c d e", "x y z a b"]
    inputs = {"hyp": hypotheses, "ref": references}

    expected = BLEU().corpus_score(hypotheses, [references]).score
    assert corpus_bleu(summed(inputs)) == pytest.approx(expected)


def test_corpora_are_scored_along_the_last_axis():
    one, two = statistics("a b c d e", "a b c d e"), statistics("a b c d x", "a b c d e")

    both = corpus_bleu(np.stack([one, two])[:, None])
    assert both.shape == (2, 1)
    assert both[:, 0].tolist() == [corpus_bleu(one), corpus_bleu(two)]


def test_signature_names_smoothing_tokeniser_and_version():
    assert "tok:13a" in signature()
    assert "smooth:exp" in signature()
    assert "nrefs:1" in signature()
