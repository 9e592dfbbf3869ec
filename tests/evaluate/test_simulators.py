import hashlib
import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from mechdistill.errors import InputError
from mechdistill.evaluate.simulators import Lesson, Shown, SimulatorSettings, drawn
from mechdistill.evaluate.simulators.encoder import EncoderSimulator, sentences
from mechdistill.evaluate.simulators.files import read_simulator, train_simulator, write_simulator
from mechdistill.evaluate.simulators.t5 import T5Simulator, as_text
from mechdistill.models.text_to_text import TextToText

CODES = ("a1", "b2", "c3")
WORDS = {"a1": "apple", "b2": "birch", "c3": "cedar"}


def settings(**changed):
    values = {
        "kind": "encoder",
        "checkpoint": None,
        "notes": 6,
        "strip_labels": True,
        "steps": 60,
        "batch_size": 6,
        "learning_rate": 0.3,
        "seed": 0,
    }
    return SimulatorSettings.of(values | changed)


def lesson(*answer):
    named = " ".join(WORDS[code] for code in answer)
    return Lesson(f"Where is it ? The {named} .", f"It may be {named} .", answer)


LESSONS = [lesson("a1"), lesson("b2"), lesson("c3"), lesson("a1", "c3"), lesson("b2", "a1")]


class Axes:
    """e(sentence) by its words, each on an axis of its own, unit length."""

    dimension = 40

    def __init__(self):
        self.places = {}

    def encode(self, texts):
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row[self.places.setdefault(word, len(self.places))] += 1
            row /= np.linalg.norm(row)
        return rows


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A tiny T5 of random weights in a folder, as the parameters name it."""
    folder = tmp_path_factory.mktemp("t5")
    texts = [as_text(Shown(*each[:2])) for each in LESSONS] + ["; ".join(CODES) + ";"]
    words = sorted({word for text in texts for word in text.split()} | set(CODES))
    vocabulary = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", *words])}
    raw = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    raw.pre_tokenizer = WhitespaceSplit()
    roles = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=raw, **roles).save_pretrained(folder)
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(vocabulary),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    files = {"model.safetensors": digest}
    return {"kind": "folder", "name": str(folder), "revision": None, "files": files}


def test_each_view_is_drawn_a_third_of_the_time_and_each_lesson_as_often():
    batches = list(drawn(LESSONS, settings(steps=500, batch_size=6)))
    shown = [view for batch in batches for _, view in batch]
    numbers = [number for batch in batches for number, _ in batch]

    assert np.bincount(numbers).tolist() == [600] * 5
    hidden = [(view.question is None, view.reasoning is None) for view in shown]
    for pattern in ((False, False), (True, False), (False, True)):
        assert hidden.count(pattern) / len(shown) == pytest.approx(1 / 3, abs=0.03)
    assert (True, True) not in hidden


def test_scores_of_the_encoder_simulator_are_those_of_a_slow_loop():
    encoder = Axes()
    simulator = EncoderSimulator.untrained(encoder, CODES, 0)
    tensors, _ = simulator.contents()
    shown = [
        Shown("One two . Three four .", "Five ."),
        Shown("One two . Three four .", None),
        Shown(None, "Five . Six seven !"),
        Shown("", " . "),
    ]

    expected = []
    for each in shown:
        row = []
        for weight, bias in zip(tensors["weight"], tensors["bias"], strict=True):
            score = float(bias)
            for text in each:
                if text is not None and sentences(text):
                    products = encoder.encode(sentences(text)) @ weight.detach().numpy()
                    score += max(products)
            row.append(score)
        expected.append(row)
    assert simulator.scores(shown).detach().numpy() == pytest.approx(np.array(expected), abs=1e-5)


def test_gradient_of_the_encoder_simulator_is_that_of_finite_differences():
    simulator = EncoderSimulator.untrained(Axes(), CODES, 0)
    head = simulator._head
    shown = [Shown("one two . three .", "four ."), Shown(None, "one .")]
    simulator.scores(shown).square().sum().backward()

    with torch.no_grad():
        step = 1e-2
        for place in ((0, 0), (1, 2)):
            values = []
            for sign in (step, -step):
                head.weight[place] += sign
                values.append(float(simulator.scores(shown).square().sum()))
                head.weight[place] -= sign
            slope = (values[0] - values[1]) / (2 * step)
            assert float(head.weight.grad[place]) == pytest.approx(slope, abs=1e-2)


def learns(simulator):
    """Whether it answers each lesson from either part and from both."""
    views = [view for q, r, _ in LESSONS for view in (Shown(q, r), Shown(q, None), Shown(None, r))]
    wanted = [set(each.answer) for each in LESSONS for _ in range(3)]
    return [set(found) for found in simulator.answer(views)] == wanted


def test_encoder_simulator_learns_and_is_read_back(tmp_path):
    encoder = Axes()
    simulator = train_simulator(LESSONS, CODES, encoder, settings(steps=300))
    path = tmp_path / "simulator.safetensors"
    write_simulator(path, simulator)
    again = read_simulator(path, encoder)

    assert learns(simulator)
    assert learns(again)
    written = path.read_bytes()
    write_simulator(path, train_simulator(LESSONS, CODES, encoder, settings(steps=300)))
    assert path.read_bytes() == written


def test_encoder_simulator_that_is_shown_nothing_answers_nothing():
    assert EncoderSimulator.untrained(Axes(), CODES, 0).answer([Shown("", None)]) == [()]


def test_t5_simulator_learns_and_is_read_back(tmp_path, checkpoint):
    asked = settings(kind="t5", checkpoint=checkpoint, steps=220, learning_rate=0.02)
    simulator = train_simulator(LESSONS, CODES, Axes(), asked)
    path = tmp_path / "simulator.safetensors"
    write_simulator(path, simulator)

    assert learns(simulator)
    assert learns(read_simulator(path, Axes()))


def test_loss_of_a_t5_is_the_likelihood_of_the_answers_alone(checkpoint):
    model = TextToText.from_folder(checkpoint["name"], 64)
    model.model.eval()
    texts, answers = ["question: Where is it ?", "question: Where"], ["a1", "b2; c3"]
    total, count = 0.0, 0
    model.model.requires_grad_(False)
    for text, answer in zip(texts, answers, strict=True):
        ids = torch.tensor([[*model.tokenizer(text)["input_ids"], 1]])
        wanted = model.answer_ids(answer)
        started = torch.tensor([[0, *wanted[:-1]]])
        logits = model.model(input_ids=ids, decoder_input_ids=started).logits[0]
        for position, token in enumerate(wanted):
            total -= float(torch.log_softmax(logits[position].double(), -1)[token])
            count += 1

    assert float(model.loss(texts, answers)) == pytest.approx(total / count, rel=1e-4)


def test_a_long_text_loses_the_end_of_its_question(checkpoint):
    model = TextToText.from_folder(checkpoint["name"], 6)
    text = as_text(Shown("Where is it ?", "It may"))

    assert model.tokenizer.decode(model._ids(text)) == "reasoning: It may question: Where </s>"


def test_answers_outside_the_label_space_are_dropped(checkpoint):
    model = TextToText.from_folder(checkpoint["name"], 64)
    model.write = lambda texts, batch_size, longest: ["b2; nothing;a1; b2", ""]

    assert T5Simulator(model, CODES, 2).answer([Shown("x", None)] * 2) == [("b2", "a1"), ()]


def test_other_weights_than_those_of_the_study_are_refused(checkpoint):
    wrong = checkpoint | {"files": {"model.safetensors": "0" * 64}}
    with pytest.raises(InputError, match=r"evaluate\.simulator\.checkpoint\.files"):
        train_simulator(LESSONS, CODES, Axes(), settings(kind="t5", checkpoint=wrong))


def test_a_file_that_is_no_simulator_is_refused(tmp_path):
    from mechdistill.artifacts import write_tensors

    path = tmp_path / "other.safetensors"
    write_tensors(path, {"x": torch.zeros(1)}, {"kind": json.dumps("other")})
    with pytest.raises(InputError, match="no simulator"):
        read_simulator(path, Axes())
