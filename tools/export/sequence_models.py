"""Export SavedModels that tag sequences and draw trees (TF Text), with TensorFlow's answers.

Runs where tensorflow_text is installed, from the root of the repository:

    python tools/export/sequence_models.py [name …]

The files are those of `tools/export/text_models.py`.
"""

from __future__ import annotations

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from tools.export.text_models import MODELS, TEXTS, Outputs, export_module, ragged, sample_texts
from tools.export.token_models import Tokens

TAGS = 5  # O, B, I, E, S
# from each tag, and from the start, to each tag, and to the end
ALLOWED = np.array(
    [
        [1, 1, 0, 0, 1, 1],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 1],
        [1, 1, 0, 0, 1, 1],
        [1, 1, 0, 0, 1, 0],
    ],
    bool,
)


def numbers(tokens: tf.RaggedTensor, count: int) -> tf.RaggedTensor:
    """Return `count` random features of each token, in [0, 1)."""
    weights = tf.constant(np.random.default_rng(7).random(1 << 10, np.float32))
    hashes = tf.ragged.map_flat_values(tf.strings.to_hash_bucket_fast, tokens, 1 << 20)
    places = tf.ragged.map_flat_values(
        lambda each: (each[:, None] * tf.range(1, 2 * count, 2, dtype=tf.int64)) % (1 << 10), hashes
    )
    return tf.ragged.map_flat_values(lambda each: tf.gather(weights, each), places)


def tagged_words() -> Tokens:
    """BIOES tags of words: those that the Viterbi and the greedy algorithm find."""
    weights = np.random.default_rng(8).random((TAGS + 1, TAGS + 1), np.float32)

    def build(words: tf.Tensor) -> Outputs:
        scores = numbers(tf_text.WhitespaceTokenizer().tokenize(words), TAGS)
        outputs: Outputs = {}
        for name, call in (
            ("viterbi", tf_text.viterbi_constrained_sequence),
            ("greedy", tf_text.greedy_constrained_sequence),
        ):
            for log in (True, False):
                found = call(scores, None, ALLOWED, weights, log, True)
                outputs |= ragged(f"{name}_{'log' if log else 'product'}", found)
            outputs |= ragged(f"{name}_free", call(scores, use_start_and_end_states=False))
        return outputs

    return Tokens(build)


def word_trees() -> Tokens:
    """Trees of the words of a sentence, as a dependency parser makes them."""

    def build(words: tf.Tensor) -> Outputs:
        tokens = tf_text.WhitespaceTokenizer().tokenize(tf.strings.join(["root ", words]))
        features = numbers(tokens, 8).to_tensor()
        turned = tf.roll(features, 3, -1)
        outputs: Outputs = {}
        for kind in (tf.float32, tf.float64, tf.int32):
            scale = 100 if kind == tf.int32 else 1
            scores = tf.cast(tf.matmul(features, turned, transpose_b=True) * scale, kind)
            for forest in (True, False):
                size = tf.cast(tokens.row_lengths(), tf.int32)
                total, sources = tf_text.max_spanning_tree(size, scores, forest=forest)
                name = f"{kind.name}_{'forest' if forest else 'tree'}"
                outputs |= {f"{name}_sources": sources}
                if kind == tf.int32:
                    outputs |= {f"{name}_total": total}
        return outputs

    return Tokens(build)


BUILDERS = {each.__name__: each for each in (tagged_words, word_trees)}


def main() -> None:
    words = sample_texts(random.Random(5), TEXTS)
    for name in sys.argv[1:] or BUILDERS:
        export_module(MODELS / name, BUILDERS[name](), words)


if __name__ == "__main__":
    main()
