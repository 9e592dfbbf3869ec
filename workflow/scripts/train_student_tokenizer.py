"""Train the students' own tokenizer on notes and label names, without reasoning.

Arguments: --label-space.
Outputs: --tokenizer (tokenizer.json).
Parameters: seed, data.world, distil.student_tokenizer.
"""

import argparse

import numpy as np

from mechdistill.data.labels import read_label_space
from mechdistill.data.pretraining import base_texts
from mechdistill.data.student_tokenizer import TEXTS, train_byte_level_bpe
from mechdistill.data.tokenizer import save_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label-space", required=True, help="input")
    parser.add_argument("--tokenizer", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)

    settings = WorldSettings.of(p["seed"], p["data.world"])
    rng = np.random.default_rng([settings.seed, TEXTS])
    texts = base_texts(read_label_space(args.label_space), settings, TEXTS, rng)
    vocabulary = p["distil.student_tokenizer"]["vocabulary"]
    save_tokenizer(args.tokenizer, train_byte_level_bpe(texts, vocabulary))


if __name__ == "__main__":
    main()
