"""Train small SentencePiece models and export SavedModels with them, with TensorFlow's answers.

Runs where tensorflow_text and sentencepiece are installed, from the root of the repository:

    python tools/export/sentencepiece_models.py [--texts N] [--seed S] [--folder FOLDER] [name …]

The files are those of `tools/export/text_models.py`.
"""

from __future__ import annotations

import argparse
import io
import pathlib
import random
import re
import sys
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text

from tools.export.text_models import MODELS, Outputs, export_module, ragged, sample_texts
from tools.export.token_models import Tokens, offsets

SENTENCE = (
    "the quick brown fox jumps over a lazy dog hello world naïve café Straße привет мир столица "
    "東京 大阪 日本 語 你好 世界 שלום عالم नमस्ते 한국어 emoji 😀 123 45.6 it's e.g. unhappiness"
)
WORDS = re.split(" ", SENTENCE)


def sentences() -> Iterator[str]:
    source = random.Random(3)
    for _ in range(2000):
        yield " ".join(source.choice(WORDS) for _ in range(source.randint(2, 12)))


def trained(kind: str, size: int, form: str = "identity", **options: object) -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences(), model_writer=written, model_type=kind, vocab_size=size,
        hard_vocab_limit=False, minloglevel=2, normalization_rule_name=form, **options,
    )  # fmt: skip
    return written.getvalue()


def albert_inputs() -> Tokens:
    """Two segments of an ALBERT model: trimmed, combined and padded."""
    tokenizer = tf_text.SentencepieceTokenizer(
        trained("unigram", 220, "nmt_nfkc_cf"), out_type=tf.int32
    )

    def build(words: tf.Tensor) -> Outputs:
        first, second = tokenizer.tokenize(words), tokenizer.tokenize(tf.reverse(words, [0]))
        trimmed = tf_text.WaterfallTrimmer(12).trim([first, second])
        joined, types = tf_text.combine_segments(trimmed, 2, 3)
        numbers, mask = tf_text.pad_model_inputs(joined, 16)
        return {
            "input_word_ids": numbers, "input_mask": mask,
            "input_type_ids": tf_text.pad_model_inputs(types, 16)[0],
            "size": tf.reshape(tokenizer.vocab_size(), [1]),
        }  # fmt: skip

    return Tokens(build, tokenizer)


def t5_inputs() -> Tokens:
    """The inputs of a T5 model, which end with a token, and the text of the tokens."""
    tokenizer = tf_text.SentencepieceTokenizer(
        trained(
            "unigram", 480, "nmt_nfkc", byte_fallback=True, pad_id=0, eos_id=1, unk_id=2, bos_id=-1
        ),
        out_type=tf.int32, add_eos=True,
    )  # fmt: skip

    def build(words: tf.Tensor) -> Outputs:
        tokens, starts, ends = tokenizer.tokenize_with_offsets(words)
        return {
            **offsets("tokens", (tokens, starts, ends)),
            "padded": tokens.to_tensor(0, shape=[None, 24]),
            "back": tokenizer.detokenize(tokens),
        }

    return Tokens(build, tokenizer)


def pairs_of_bytes() -> Tokens:
    """Byte pairs as text; tokens to numbers and back; the order reversed."""
    tokenizer = tf_text.SentencepieceTokenizer(
        trained("bpe", 260), out_type=tf.string, add_bos=True, add_eos=True
    )
    # Two tokenizers of one model would share their options in TensorFlow.
    other = tf_text.SentencepieceTokenizer(
        trained("bpe", 250), out_type=tf.int32, reverse=True, add_bos=True
    )

    def build(words: tf.Tensor) -> Outputs:
        tokens, starts, ends = tokenizer.tokenize_with_offsets(words)
        numbers = tokenizer.string_to_id(tokens)
        turned = other.tokenize(words)
        return {
            **offsets("tokens", (tokens, starts, ends)),
            "numbers": numbers.flat_values,
            "again": tokenizer.id_to_string(numbers).flat_values,
            "back": tokenizer.detokenize(tokens),
            **ragged("turned", turned),
            "turned_back": other.detokenize(turned),
        }

    return Tokens(build, tokenizer, other)


def words_and_characters() -> Tokens:
    """Models of words and of characters; the best encodings of a unigram model."""
    kinds = {
        "words": tf_text.SentencepieceTokenizer(trained("word", 40)),
        "characters": tf_text.SentencepieceTokenizer(trained("char", 90)),
    }
    best = tf_text.SentencepieceTokenizer(trained("unigram", 220), nbest_size=3, return_nbest=True)

    def build(words: tf.Tensor) -> Outputs:
        outputs: Outputs = {}
        for name, tokenizer in kinds.items():
            outputs |= offsets(name, tokenizer.tokenize_with_offsets(words))
        return outputs | ragged("best", best.tokenize(words))

    return Tokens(build, *kinds.values(), best)


def fast_sentencepieces() -> Tokens:
    """The tokenizers whose models are FlatBuffers in the graph: tokens, and the text of tokens."""
    numbers = tf_text.FastSentencepieceTokenizer(
        trained("unigram", 480, "nmt_nfkc_cf"), add_bos=True, add_eos=True
    )
    pairs = tf_text.FastSentencepieceTokenizer(trained("bpe", 260), reverse=True)

    def build(words: tf.Tensor) -> Outputs:
        tokens, turned = numbers.tokenize(words), pairs.tokenize(words)
        return {
            **ragged("tokens", tokens), **ragged("turned", turned),
            "back": numbers.detokenize(tokens), "turned_back": pairs.detokenize(turned),
        }  # fmt: skip

    return Tokens(build, numbers, pairs)


BUILDERS: dict[str, Callable[[], Tokens]] = {
    each.__name__: each
    for each in (
        albert_inputs,
        fast_sentencepieces,
        pairs_of_bytes,
        t5_inputs,
        words_and_characters,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, default=MODELS)
    options = parser.parse_args()
    source = random.Random(options.seed)
    words = sample_texts(source, options.texts)
    words += [" ".join(source.choices(WORDS, k=6)).encode() for _ in range(options.texts)]
    for name in options.names or BUILDERS:
        export_module(options.folder / name, BUILDERS[name](), words)


if __name__ == "__main__":
    main()
