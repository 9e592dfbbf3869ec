import numpy as np
import pytest
import torch

from mechdistill.evaluate.perplexity import IGNORED, negative_log_likelihood, perplexity

from .cases import agrees, cases


@pytest.mark.parametrize("case", cases("perplexity"))
def test_worked_case(case):
    logits, target = torch.tensor(case["inputs"]["logits"]), torch.tensor(case["inputs"]["target"])
    nll = negative_log_likelihood(logits, target).numpy()
    tokens = (target != IGNORED).sum(-1).numpy()

    assert agrees(perplexity(nll.sum(), tokens.sum()), case)


@pytest.mark.parametrize("case", cases("perplexity_example_mean"))
def test_mean_of_examples_is_not_the_pooled_perplexity(case):
    first, second = case["inputs"]["per_example"]
    tokens = np.array([3, 2])
    nll = np.log([first, second]) * tokens

    assert agrees(perplexity(nll, tokens).mean(), case)
    assert perplexity(nll.sum(), tokens.sum()) < perplexity(nll, tokens).mean() - 1


def test_likelihood_is_the_product_of_the_tokens_probabilities():
    logits = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([[1, 2, 3, 4, 5], [IGNORED, IGNORED, 6, 0, 1]])
    expected = []
    for row in range(2):
        total = 0.0
        for position in range(5):
            token = int(target[row, position])
            if token != IGNORED:
                scores = logits[row, position].double().exp()
                total -= float(torch.log(scores[token] / scores.sum()))
        expected.append(total)

    assert negative_log_likelihood(logits, target).tolist() == pytest.approx(expected)


def test_no_counted_token_has_no_perplexity():
    assert np.isnan(perplexity(np.array(0.0), np.array(0.0)))
