"""Records what TF Text's fast SentencePiece ops answer to random calls.

Runs where tensorflow_text and sentencepiece are installed; `tests/extras/text/test_random_cases.py`
compares the answers:

    python tools/record/sentencepiece_cases.py [--cases N] [--seed S] [--output FILE]

N is the number of calls of each op. Left out are models that are damaged and row splits that do not
fit, with which TensorFlow reads outside of its inputs, and outputs of other types than int32, which
end its process.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import numpy as np
import tensorflow as tf
from tensorflow_text.python.ops import fast_sentencepiece_tokenizer

from tools.export.sentencepiece_models import WORDS, trained
from tools.record.text_cases import Case, called, write_cases
from tools.record.wordpiece_cases import Models, some_words, splits, with_model

OUTPUT = pathlib.Path(__file__).parents[2] / "tests/extras/text/sentencepiece_cases.json.gz"
CALLS = fast_sentencepiece_tokenizer.gen_fast_sentencepiece_tokenizer
KINDS = (
    ("nfkc", "unigram", 480, "nmt_nfkc_cf", {"byte_fallback": True}),
    ("pairs", "bpe", 260, "identity", {"add_dummy_prefix": False}),
    ("spaces", "unigram", 220, "identity", {"remove_extra_whitespaces": False}),
    ("words", "word", 40, "identity", {"user_defined_symbols": ["<sep>", "wor", "a b"]}),
    ("characters", "char", 60, "identity", {"treat_whitespace_as_suffix": True, "bos_id": -1}),
)


def models() -> tuple[Models, Models]:
    """Return models for encoding and for decoding, by name."""
    encoders: Models = {}
    decoders: Models = {}
    for name, kind, size, form, options in KINDS:
        model = trained(kind, size, form, **options)
        tokenizer = fast_sentencepiece_tokenizer.FastSentencepieceTokenizer(model)
        encoders["encode_" + name] = tokenizer._converted_model
        decoders["decode_" + name] = tokenizer._converted_model_detokenizer
    return encoders, decoders


def encoded(source: random.Random, known: Models) -> Case:
    name = source.choice(sorted(known))
    words = some_words(source).tolist()
    words += [" ".join(source.choices(WORDS, k=4)).encode() for _ in range(source.randint(0, 3))]
    case = called(
        "TFText>FastSentencepieceTokenize",
        CALLS.tf_text_fast_sentencepiece_tokenize,
        known[name],
        tf.constant(words, tf.string, [len(words)]),
        np.int32(0),
        np.float32(0),
        *(source.random() < 0.3 for _ in range(3)),
    )
    return with_model(case, 0, name, known[name])


def decoded(source: random.Random, known: Models) -> Case:
    name = source.choice(sorted(known))
    rows = splits(source, source.randint(0, 5), 8, source.choice((0, 0, 2)))
    count = rows[-1] + source.choice((0, 0, 3))
    numbers = [source.randrange(-1 if source.random() < 0.005 else 0, 44) for _ in range(count)]
    case = called(
        "TFText>FastSentencepieceDetokenize",
        CALLS.tf_text_fast_sentencepiece_detokenize,
        known[name],
        np.array(numbers, np.int32),
        np.array(rows, source.choice((np.int32, np.int64))),
    )
    return with_model(case, 0, name, known[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=150)
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--output", type=pathlib.Path, default=OUTPUT)
    chosen = parser.parse_args()
    source = random.Random(chosen.seed)
    found: list[Case] = []
    for make, known in zip((encoded, decoded), models(), strict=True):
        found += [make(source, known) for _ in range(chosen.cases)]
    print(sum("error" in case for case in found), "are refused")
    write_cases(found, chosen.output)


if __name__ == "__main__":
    main()
