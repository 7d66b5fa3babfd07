"""Export SavedModels that make tokens with vocabularies (TF Text), with TensorFlow's answers.

Runs where tensorflow_text is installed, from the root of the repository:

    python tools/export/token_models.py [--texts N] [--seed S] [--folder FOLDER] [name …]

The files are those of `tools/export/text_models.py`. The vocabulary is made of the texts.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import tensorflow as tf
import tensorflow_text as tf_text

from tools.export.text_models import MODELS, Outputs, export_module, ragged, sample_texts

Builder = Callable[[list[str]], "Tokens"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]


class Tokens(tf.Module):
    """A module whose function `call` maps words to named outputs."""

    def __init__(self, build: Callable[[tf.Tensor], Outputs], *tracked: Any) -> None:
        super().__init__()
        self.tracked = tracked
        self.call = tf.function(build, input_signature=[tf.TensorSpec([None], tf.string, "words")])


def vocabulary(words: Iterable[bytes]) -> list[str]:
    """Return wordpieces: special ones, characters, and pieces of the texts' words."""
    counts: Counter[str] = Counter()
    for word in words:
        text = unicodedata.normalize("NFD", word.decode("utf-8", "ignore").lower())
        for part in text.split():
            for size in (1, 2, 3):
                for place in range(len(part) - size + 1):
                    counts[("##" if place else "") + part[place : place + size]] += 1
    kept = [piece for piece, _ in counts.most_common(1500) if "\0" not in piece]
    more = [
        "hello",
        "world",
        "##ing",
        "##s",
        "un",
        "##known",
        "it",
        "##'",
        "'",
        "!",
        "?",
        "他",
        "##来",
    ]
    return list(dict.fromkeys([*SPECIAL, *kept, *more, "it's", "(really)"]))


def table_of(pieces: list[str]) -> tf.lookup.StaticHashTable:
    numbers = tf.range(len(pieces), dtype=tf.int64)
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(pieces), numbers), -1
    )


def offsets(name: str, found: tuple[Any, Any, Any]) -> Outputs:
    tokens, starts, ends = found
    return {
        **ragged(name, tokens),
        f"{name}_starts": starts.flat_values,
        f"{name}_ends": ends.flat_values,
    }


def bert_inputs(pieces: list[str]) -> Tokens:
    """The whole way to BERT's inputs: two segments, trimmed, combined and padded."""
    table = table_of(pieces)
    tokenizer = tf_text.BertTokenizer(table, lower_case=True, token_out_type=tf.int64)

    def build(words: tf.Tensor) -> Outputs:
        first = tokenizer.tokenize(words).merge_dims(-2, -1)
        second = tokenizer.tokenize(tf.reverse(words, [0])).merge_dims(-2, -1)
        trimmed = tf_text.RoundRobinTrimmer(12).trim([first, second])
        joined, types = tf_text.combine_segments(trimmed, 2, 3)
        numbers, mask = tf_text.pad_model_inputs(joined, 16)
        return {
            "input_word_ids": numbers,
            "input_mask": mask,
            "input_type_ids": tf_text.pad_model_inputs(types, 16)[0],
        }

    return Tokens(build, table)


def bert_cased(pieces: list[str]) -> Tokens:
    """Tokens as text with their offsets; unused tokens are kept; words of few bytes."""
    table = table_of(pieces)
    kinds = {
        "plain": tf_text.BertTokenizer(table, token_out_type=tf.string),
        "kept": tf_text.BertTokenizer(
            table, token_out_type=tf.string, preserve_unused_token=True, max_bytes_per_word=9
        ),
        "split": tf_text.BertTokenizer(
            table, token_out_type=tf.string, unknown_token=None, max_chars_per_token=2
        ),
    }

    def build(words: tf.Tensor) -> Outputs:
        outputs: Outputs = {}
        for name, tokenizer in kinds.items():
            tokens, starts, ends = tokenizer.tokenize_with_offsets(words)
            outputs |= offsets(name, (tokens, starts, ends))
        return outputs

    return Tokens(build, table)


def wordpieces(pieces: list[str]) -> Tokens:
    """The first tokenizer of wordpieces, on words that white space divides."""
    table = table_of(pieces)
    kinds = {
        "ids": tf_text.WordpieceTokenizer(table, token_out_type=tf.int64),
        "split": tf_text.WordpieceTokenizer(table, split_unknown_characters=True),
        "other": tf_text.WordpieceTokenizer(
            table, suffix_indicator="", unknown_token="?", max_bytes_per_word=30
        ),
    }

    def build(words: tf.Tensor) -> Outputs:
        divided = tf_text.WhitespaceTokenizer().tokenize(words)
        outputs: Outputs = {}
        for name, tokenizer in kinds.items():
            outputs |= offsets(name, tokenizer.tokenize_with_offsets(divided))
        return outputs

    return Tokens(build, table)


def fast_bert(pieces: list[str]) -> Tokens:
    """FastBertTokenizer, which normalizes as well, and back."""
    tokenizer = tf_text.FastBertTokenizer(
        pieces, lower_case_nfd_strip_accents=True, token_out_type=tf.int32,
        support_detokenization=True,
    )  # fmt: skip

    def build(words: tf.Tensor) -> Outputs:
        tokens = tokenizer.tokenize(words)
        return {
            **offsets("tokens", tokenizer.tokenize_with_offsets(words)),
            "back": tokenizer.detokenize(tokens),
        }

    return Tokens(build)


def fast_wordpieces(pieces: list[str]) -> Tokens:
    """FastWordpieceTokenizer with and without dividing words, and back."""
    whole = tf_text.FastWordpieceTokenizer(
        pieces, token_out_type=tf.string, max_bytes_per_word=20, support_detokenization=True
    )
    single = tf_text.FastWordpieceTokenizer(
        pieces, token_out_type=tf.int64, no_pretokenization=True, support_detokenization=True
    )

    def build(words: tf.Tensor) -> Outputs:
        divided = tf_text.WhitespaceTokenizer().tokenize(words)
        return {
            **offsets("whole", whole.tokenize_with_offsets(words)),
            **offsets("single", single.tokenize_with_offsets(divided)),
            "back": single.detokenize(single.tokenize(divided).merge_dims(-2, -1)),
        }

    return Tokens(build)


def phrases(pieces: list[str]) -> Tokens:
    """PhraseTokenizer and back."""
    known = ["<UNK>", *(piece for piece in pieces[6:600] if not piece.startswith("##"))]
    known = list(dict.fromkeys([*known, "hello world", "it's (really)", "he said", "hello"]))
    tokenizer = tf_text.PhraseTokenizer(
        known, token_out_type=tf.int32, support_detokenization=True, prob=0
    )

    def build(words: tf.Tensor) -> Outputs:
        spaced = tf.strings.regex_replace(words, "e", " hello world ")
        tokens = tokenizer.tokenize(spaced)
        return {**ragged("tokens", tokens), "back": tokenizer.detokenize(tokens)}

    return Tokens(build)


def splits_and_merges(_: list[str]) -> Tokens:
    """Tokenizers whose decisions for each character are inputs; here they come of the text."""
    by_label = tf_text.SplitMergeTokenizer()

    def build(words: tf.Tensor) -> Outputs:
        words = tf.strings.unicode_transcode(words, "UTF-8", "UTF-8")
        points = tf.strings.unicode_decode(words, "UTF-8")
        labels = tf.ragged.map_flat_values(lambda each: tf.cast(each % 3 == 0, tf.int32), points)
        outputs: Outputs = {}
        for force in (True, False):
            found = by_label.tokenize_with_offsets(
                words, labels, force_split_at_break_character=force
            )
            outputs |= offsets(f"labels_{int(force)}", found)
        scores = tf.cast(points.to_tensor(0), tf.float32)
        logits = tf.stack([tf.sin(scores), tf.cos(scores)], -1)
        for force in (True, False):
            by_logits = tf_text.SplitMergeFromLogitsTokenizer(force)
            found = by_logits.tokenize_with_offsets(words, logits)
            outputs |= offsets(f"logits_{int(force)}", found)
        return outputs

    return Tokens(build)


def round_robin(_: list[str]) -> Tokens:
    """Segments share the places of a sequence in turn."""

    def build(words: tf.Tensor) -> Outputs:
        parts = [tf_text.WhitespaceTokenizer().tokenize(words), tf.strings.bytes_split(words)]
        numbers = [tf.ragged.map_flat_values(tf.strings.length, part) for part in parts]
        outputs: Outputs = {}
        for length in (0, 3, 8):
            trimmer = tf_text.RoundRobinTrimmer(length)
            for place, part in enumerate(trimmer.trim(parts)):
                outputs |= ragged(f"words_{length}_{place}", part)
            for place, part in enumerate(trimmer.generate_mask(numbers)):
                outputs |= ragged(f"mask_{length}_{place}", part)
        return outputs

    return Tokens(build)


def spans_and_scores(_: list[str]) -> Tokens:
    """BOISE tags of spans and back, n-grams, and the ROUGE-L of neighbouring texts."""

    def build(words: tf.Tensor) -> Outputs:
        tokens, starts, ends = tf_text.WhitespaceTokenizer().tokenize_with_offsets(words)
        sizes = tf.strings.length(words)
        count = 4
        places = tf.range(count) * tf.maximum(sizes[:, None] // count, 1)
        begins = tf.RaggedTensor.from_tensor(places)
        stops = tf.RaggedTensor.from_tensor(places + sizes[:, None] % 5 + 1)
        kinds = tf.RaggedTensor.from_tensor(
            tf.gather(tf.constant(["loc", "x", "pere"]), (places + sizes[:, None]) % 3)
        )
        first, last = tf.cast(starts, tf.int32), tf.cast(ends, tf.int32)
        outputs: Outputs = {}
        for strict in (True, False):
            tags = tf_text.offsets_to_boise_tags(
                first, last, begins, stops, kinds, use_strict_boundary_mode=strict
            )
            outputs |= ragged(f"tags_{int(strict)}", tags)
            back, until, types = tf_text.boise_tags_to_offsets(first, last, tags)
            outputs |= offsets(f"back_{int(strict)}", (types, back, until))
        for width in (1, 2, 3):
            joined = tf_text.ngrams(tokens, width, reduction_type=tf_text.Reduction.STRING_JOIN)
            outputs |= ragged(f"ngrams_{width}", joined)
        other = tf.gather(tokens, tf.argsort(sizes, stable=True))
        for name, alpha in (("half", 0.5), ("one", 1.0), ("none", -1.0)):
            scores = tf_text.metrics.rouge_l(tokens, other, alpha)
            outputs |= {
                f"{name}_f": scores.f_measure,
                f"{name}_p": scores.p_measure,
                f"{name}_r": scores.r_measure,
            }
        return outputs

    return Tokens(build)


BUILDERS: dict[str, Builder] = {
    each.__name__: each
    for each in (
        bert_inputs, bert_cased, wordpieces, fast_bert, fast_wordpieces, phrases,
        splits_and_merges, round_robin, spans_and_scores,
    )
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, default=MODELS)
    options = parser.parse_args()
    words = sample_texts(random.Random(options.seed), options.texts)
    pieces = vocabulary(sample_texts(random.Random(5), 60))
    for name in options.names or BUILDERS:
        export_module(options.folder / name, BUILDERS[name](pieces), words)


if __name__ == "__main__":
    main()
