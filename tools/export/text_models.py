"""Export small SavedModels that use ops of TF Text, with TensorFlow's answers.

Runs where tensorflow_text is installed, from the root of the repository:

    python tools/export/text_models.py [name …]

Each model is tests/extras/text/models/NAME/saved_model.pb.gz; answers.json.gz beside it has the
texts of its signature `serving_default` and TensorFlow's outputs.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import random
import shutil
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import tensorflow as tf
import tensorflow_text as tf_text

from tools.record.text_cases import packed, texts

MODELS = pathlib.Path(__file__).parents[2] / "tests/extras/text/models"
TEXTS = 60
Outputs = dict[str, Any]


def ragged(name: str, tensor: tf.RaggedTensor) -> Outputs:
    return {f"{name}_values": tensor.flat_values, f"{name}_splits": tensor.nested_row_splits[-1]}


def normalized_words(words: tf.Tensor) -> Outputs:
    """White space divides the text in the form NFKC without case."""
    clean = tf_text.case_fold_utf8(tf_text.normalize_utf8(words, "NFKC"))
    tokens, starts, ends = tf_text.WhitespaceTokenizer().tokenize_with_offsets(clean)
    return {"clean": clean, "ends": ends.flat_values, **ragged("tokens", tokens)} | {
        "starts": starts.flat_values
    }


def source_offsets(words: tf.Tensor) -> Outputs:
    """The offsets of words in a normal form are translated to those in the text."""
    # a text without words has no offsets, which the op does not expect
    clean, maps = tf_text.normalize_utf8_with_offsets_map(tf.strings.join([words, "."]), "NFKD")
    tokens, starts, ends = tf_text.UnicodeScriptTokenizer().tokenize_with_offsets(clean)
    sources = tf_text.find_source_offsets(maps, starts).flat_values
    return {"starts": sources, "ends": ends.flat_values, **ragged("tokens", tokens)}


def sentences(words: tf.Tensor) -> Outputs:
    """The state-based sentence breaker."""
    breaker = tf_text.StateBasedSentenceBreaker()
    found, starts, ends = breaker.break_sentences_with_offsets(words)
    return {**ragged("sentences", found), "starts": starts.flat_values, "ends": ends.flat_values}


def expressions(words: tf.Tensor) -> Outputs:
    """Words and punctuation, divided by a regular expression, and lines."""
    tokens, starts, ends = tf_text.regex_split_with_offsets(
        words, r"\s+|[[:punct:]]|\p{Han}", r"[[:punct:]]|\p{Han}"
    )
    lines = tf_text.RegexSplitter(r"\r?\n").split(words)
    return {
        **ragged("tokens", tokens),
        "starts": starts.flat_values,
        "ends": ends.flat_values,
        **ragged("lines", lines),
    }


def bert_basic(words: tf.Tensor) -> Outputs:
    """What BertTokenizer does before it looks words up."""
    from tensorflow_text.python.ops.bert_tokenizer import BasicTokenizer

    found = {}
    for name, lower in (("lower", True), ("cased", False)):
        tokens, starts, ends = BasicTokenizer(lower_case=lower).tokenize_with_offsets(words)
        found |= ragged(name, tokens)
        found |= {f"{name}_starts": starts.flat_values, f"{name}_ends": ends.flat_values}
    return found


def bert_normalizer(words: tf.Tensor) -> Outputs:
    """The normalizer of FastBertTokenizer, whose model is a constant."""
    normalizer = tf_text.FastBertNormalizer(lower_case_nfd_strip_accents=True)
    found, offsets = normalizer.normalize_with_offsets(words)
    splits = tf_text.ByteSplitter().split_with_offsets(words)
    binary = tf_text.utf8_binarize(words)
    return {
        "normalized": found,
        "offsets": offsets.flat_values,
        "bytes": splits[0].flat_values,
        "bits": tf.reduce_sum(binary, -1),
    }


BUILDERS: dict[str, Callable[[tf.Tensor], Outputs]] = {
    each.__name__: each
    for each in (
        normalized_words, source_offsets, sentences, expressions, bert_basic, bert_normalizer,
    )
}  # fmt: skip


def export(name: str, build: Callable[[tf.Tensor], Outputs], words: list[bytes]) -> None:
    module = tf.Module()
    module.call = tf.function(build, input_signature=[tf.TensorSpec([None], tf.string, "words")])
    export_module(MODELS / name, module, words)


def export_module(folder: pathlib.Path, module: Any, words: list[bytes]) -> None:
    """Save a module's function `call` in a folder, and its answers to `words`."""
    shutil.rmtree(folder, ignore_errors=True)
    options = tf.saved_model.SaveOptions(experimental_debug_stripper=True)
    tf.saved_model.save(module, str(folder / "1"), {"serving_default": module.call}, options)
    model = (folder / "1" / "saved_model.pb").read_bytes()
    shutil.rmtree(folder / "1")  # there are no variables and assets
    (folder / "saved_model.pb.gz").write_bytes(gzip.compress(model, 9, mtime=0))
    answers = module.call(tf.constant(words))
    recorded = {
        "words": packed(tf.constant(words)),
        "outputs": {key: packed(tf.convert_to_tensor(each)) for key, each in answers.items()},
    }
    packed_answers = gzip.compress(json.dumps(recorded).encode(), 9, mtime=0)
    (folder / "answers.json.gz").write_bytes(packed_answers)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder.name}: {size} bytes")


def sample_texts(source: random.Random, count: int) -> list[bytes]:
    """Return random texts and some sentences."""
    words = texts(source, count)
    words += [b"Hello, World! It's (really) 5.00?", "他来到了網易杭研大廈。好！".encode()]
    words += ["Москва\u00a0— столица… Да?! ".encode(), "Ünïcödé STRASSE ﬁn".encode(), b""]
    return words


def main() -> None:
    words = sample_texts(random.Random(5), TEXTS)
    for name in sys.argv[1:] or BUILDERS:
        export(name, BUILDERS[name], words)


if __name__ == "__main__":
    main()
