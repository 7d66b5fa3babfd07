"""The SentencePiece ops whose models are FlatBuffers, which need no library.

A text is replaced by its normal form first; then the pieces are chosen whose scores have the
largest sum. Sums are of float32, as in TensorFlow, which decides between encodings that are equally
good.

TF: tensorflow_text/core/kernels/sentencepiece/optimized_encoder.cc, optimized_decoder.cc,
encoder_config.fbs, decoder_config.fbs
"""

from __future__ import annotations

import itertools
import re
from array import array

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError, UnimplementedError
from runtime.foundation.running_task import checked
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import items_of, string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import NUMBER, POINTER, STRING, elements, longest_in, text_in
from runtime.op_packages.text.double_array import DoubleArray
from runtime.op_packages.text.flatbuffer import FlatBuffer, Table
from runtime.op_packages.text.model_cache import ModelCache

# fields of EncoderConfig
_VERSION, _START, _END, _UNKNOWN, _UNKNOWN_PENALTY, _OFFSET, _PIECES, _SCORES = range(8)
_REMOVES_SPACES, _ADDS_PREFIX, _ESCAPES_SPACES, _PREFIXES, _REPLACEMENTS = range(8, 13)
# fields of DecoderConfig
_DECODER_OFFSET, _DECODER_PIECES, _REMOVES_PREFIX = 1, 2, 5
_NODES = 0  # field of Trie

_SPACE = "\u2581".encode()  # what stands for white space in a piece
_SPACES = re.compile(rb"[ \t\r\n]{2,}")
_ANY_SPACE = re.compile(rb"[ \t\r\n]")
_LATTICE = 28  # bytes of an element of the lattice, of the text that it is for, and of a piece
_OF_PART = 2 * (STRING + POINTER)  # of a replaced part and what is before it
_OF_ROW = NUMBER + STRING
_FAILED = "Sentencepiece conversion failed"
_NOT_REACHED = -1


def _trie(buffer: FlatBuffer, table: Table | None, name: str) -> DoubleArray:
    nodes = None if table is None else table.vector(_NODES, "<u4")
    if nodes is None:
        raise buffer.damaged(f"has no {name}")
    return DoubleArray(nodes)


def _check_version(table: Table) -> None:
    if table.number(_VERSION, "b"):
        raise InternalError(_FAILED)


class Encoder:
    """A model that encodes texts: what its buffer, uint8 `[n]`, says."""

    def __init__(self, data: np.ndarray) -> None:
        """Raise InvalidArgumentError if `data` is damaged, InternalError if it is too new."""
        buffer = FlatBuffer(data, "EncoderConfig")
        table = buffer.root()
        _check_version(table)
        self.start, self.end = table.number(_START, "i"), table.number(_END, "i")
        self._unknown = table.number(_UNKNOWN, "i", -1)
        self._penalty = table.number(_UNKNOWN_PENALTY, "f")
        self._offset = table.number(_OFFSET, "i")
        self._pieces = _trie(buffer, table.table(_PIECES), "pieces")
        scores = table.vector(_SCORES, "<f4")
        if scores is None:
            raise buffer.damaged("has no pieces_scores")
        self._scores = scores.data
        self._removes_spaces = bool(table.number(_REMOVES_SPACES, "B"))
        self._escapes_spaces = bool(table.number(_ESCAPES_SPACES, "B"))
        self._prefix = b" " if table.number(_ADDS_PREFIX, "B") else b""
        self._replacements = _Replacements(table)
        # the most bytes of a normal form for each byte of a text
        self.growth = self._replacements.growth

    def normalized(self, text: bytes) -> bytes:
        """Return the text that is divided into pieces."""
        if not text:
            return text
        text = self._replacements.replaced(self._prefix + text)
        if self._removes_spaces:
            text = _SPACES.sub(b" ", text)
            if text and text[-1] in b" \t\r\n":
                text = text[:-1]
        return _ANY_SPACE.sub(_SPACE, text) if self._escapes_spaces else text

    def encoded(self, text: bytes) -> array[int]:
        """Return the numbers of a text's pieces, without those of its start and end."""
        text = self.normalized(text)
        codes, previous = self._lattice(text)
        found = array("q")
        place = len(text) if previous[-1] >= 0 else 0
        while place > 0:
            code = codes[place]
            found.append(code if code == self._unknown else code + self._offset)
            place = previous[place]
        found.reverse()
        return found

    def _lattice(self, text: bytes) -> tuple[array[int], array[int]]:
        """Return (the last piece, where it begins) of the best encoding of each `text[:i]`.

        Each byte that no piece has is an unknown one; those that follow each other are one piece.
        """
        size = len(text)
        # a sum in an array of float32 is rounded as TensorFlow's sums are
        sums = array("f", [0]) * (size + 2)
        codes = array("i", [-1]) * (size + 1)
        previous = array("i", [_NOT_REACHED]) * (size + 1)
        scores, unknown, penalty = self._scores, self._unknown, self._penalty
        prefixes, count, rounded = self._pieces.prefixes, len(self._scores), size + 1
        for place in checked(range(size)):
            if place and previous[place] < 0:
                continue
            so_far = sums[place]
            if unknown >= 0:
                sums[rounded] = so_far + penalty
                total, following = sums[rounded], place + 1
                if previous[following] < 0 or sums[following] < total:
                    sums[following] = total
                    previous[following] = previous[place] if codes[place] == unknown else place
                    codes[following] = unknown
            for code, following in prefixes(text, place):
                if code >= count:
                    continue
                sums[rounded] = so_far + scores[code]
                total = sums[rounded]
                if previous[following] < 0 or sums[following] < total:
                    sums[following] = total
                    previous[following] = place
                    codes[following] = code
        return codes, previous


class _Replacements:
    """What a model writes instead of parts of a text: the longest key at each place is replaced."""

    def __init__(self, table: Table) -> None:
        keys = table.table(_PREFIXES)
        nodes = None if keys is None else keys.vector(_NODES, "<u4")
        texts = table.vector(_REPLACEMENTS, "<u1")
        if nodes is None or texts is None:
            nodes, texts = np.empty(0, "<u4"), np.empty(0, "<u1")
        self._keys = DoubleArray(nodes)
        self._texts = texts.tobytes()
        self._begins = self._keys.begins()
        # the most bytes of what replaces one byte: keys of one byte are looked up, others have two
        single = (self._longest(bytes([byte]), 0)[1] for byte in range(256))
        sizes = [*map(_escaped_size, single), -(-self._longest_text() // 2)]
        self.growth = max(*sizes, len(_SPACE))

    def _longest_text(self) -> int:
        return max(map(_escaped_size, self._texts.split(b"\0")))

    def replaced(self, text: bytes) -> bytes:
        """Return a text with its parts replaced."""
        parts: list[bytes] = []
        done = place = 0
        for _ in checked(itertools.count()):
            begin = self._begins.search(text, place)
            if not begin:
                break
            place = begin.start()
            after, instead = self._longest(text, place)
            if after > place:
                parts += text[done:place], instead
                done = place = after
            else:
                place += 1
        return b"".join([*parts, text[done:]]) if parts else text

    def _longest(self, text: bytes, place: int) -> tuple[int, bytes]:
        """Return (the end of the longest key at a place, what replaces it), or (`place`, "")."""
        found = self._keys.prefixes(text, place)
        if not found or found[-1][0] >= len(self._texts):
            return place, b""
        first, after = found[-1]
        end = self._texts.find(0, first)
        return after, self._texts[first : end if end >= 0 else len(self._texts)]


def _escaped_size(text: bytes) -> int:
    return len(text) + (len(_SPACE) - 1) * len(_ANY_SPACE.findall(text))


class Decoder:
    """A model that gives the text of pieces: what its buffer, uint8 `[n]`, says."""

    def __init__(self, data: np.ndarray) -> None:
        """Raise InvalidArgumentError if `data` is damaged, InternalError if it is too new."""
        buffer = FlatBuffer(data, "DecoderConfig")
        table = buffer.root()
        _check_version(table)
        pieces = table.strings(_DECODER_PIECES)
        if pieces is None:
            raise buffer.damaged("has no decode_pieces")
        self._pieces = pieces
        self._offset = table.number(_DECODER_OFFSET, "i")
        self._removes_prefix = bool(table.number(_REMOVES_PREFIX, "B"))

    def decoded(self, numbers: list[int]) -> bytes:
        """Return the text of pieces. Raises InternalError for a number that the model lacks."""
        try:
            parts = [self._pieces[number - self._offset] for number in numbers]
        except IndexError:
            raise InternalError(_FAILED) from None
        # TF: a piece ends at its first zero byte
        parts = [part.partition(b"\0")[0] if 0 in part else part for part in parts]
        if parts and self._removes_prefix:
            parts[0] = parts[0].removeprefix(b" ")
        return b"".join(parts)

    def text_of(self, numbers: np.ndarray) -> int:
        """Return how many bytes the pieces of some numbers have together."""
        return self._pieces.text_of(numbers.astype(np.int64) - self._offset)


_encoder_of = ModelCache(Encoder).get
_decoder_of = ModelCache(Decoder).get


def _flag(name: str, value: np.ndarray) -> bool:
    if np.ndim(value):
        raise InvalidArgumentError(f"{name} must be a scalar, got shape {list(np.shape(value))}")
    return bool(value)


def fast_sentencepiece_tokenize(
    sp_model: np.ndarray,
    input: np.ndarray,  # the op's name
    nbest_size: np.ndarray,
    alpha: np.ndarray,
    add_bos: np.ndarray,
    add_eos: np.ndarray,
    reverse: np.ndarray,
    *,
    out_type: DataType,
    Tsplits: DataType,  # noqa: N803 # the attribute's name
) -> tuple[np.ndarray, np.ndarray]:
    """TFText>FastSentencepieceTokenize: return (pieces int32 `[t]`, row splits `[texts + 1]`).

    As in TensorFlow, `nbest_size` and `alpha` change nothing. Raises UnimplementedError if
    `out_type` is string, InternalError if the model has a newer version.
    """
    if out_type != DataType.INT32:
        raise UnimplementedError(f"Pieces are int32, got out_type {out_type.tf_name}")
    begins, ends = _flag("add_bos", add_bos), _flag("add_eos", add_eos)
    turned = _flag("reverse", reverse)
    codes, splits = array("q"), [0]
    for text in items_of(input):
        model = _encoder_of(sp_model)
        row = model.encoded(text)
        if begins:
            row.insert(0, model.start)
        if ends:
            row.append(model.end)
        if turned:
            row.reverse()
        codes.extend(row)
        splits.append(len(codes))
    # TF: a number beyond int32 wraps around
    return np.frombuffer(codes, np.int64).astype(np.int32), np.array(splits, Tsplits.numpy)


def _tokenize_memory(sp_model: TensorValue, texts: TensorValue, *_: TensorValue) -> int:
    longest, rows = longest_in(texts), elements(texts)
    if not isinstance(sp_model, np.ndarray) or not longest:
        return rows * _OF_ROW
    growth = _encoder_of(sp_model).growth
    pieces = growth * (text_in(texts) + rows) + 2 * rows
    return growth * (longest + 1) * _LATTICE + longest * _OF_PART + 12 * pieces + rows * _OF_ROW


def fast_sentencepiece_detokenize(
    sp_model: np.ndarray, input_values: np.ndarray, input_splits: np.ndarray
) -> np.ndarray:
    """TFText>FastSentencepieceDetokenize: return the text of each row of pieces.

    As in TensorFlow, the first row begins with the first value. Raises InvalidArgumentError if a
    row is not in `input_values`, InternalError for a number that the model does not have.
    """
    splits, values = np.ravel(input_splits).tolist(), np.ravel(input_values).tolist()
    if not splits:
        raise InvalidArgumentError("input_splits must have at least 1 element.")
    texts, begin = [], 0
    for first, last in checked(itertools.pairwise(splits)):
        end = begin + last - first
        if not begin <= end <= len(values):
            raise InvalidArgumentError(
                "input_splits must be monotonically non-decreasing and within bounds."
            )
        texts.append(_decoder_of(sp_model).decoded(values[begin:end]))
        begin = end
    return string_tensor(texts)


def _detokenize_memory(
    sp_model: TensorValue, input_values: TensorValue, input_splits: TensorValue
) -> int:
    rows, values = elements(input_splits), elements(input_values)
    text = 0
    if isinstance(sp_model, np.ndarray) and isinstance(input_values, np.ndarray) and rows > 1:
        text = _decoder_of(sp_model).text_of(input_values)
    return 2 * text + (values + rows) * (STRING + NUMBER + 7 * POINTER)


KERNELS = (
    KernelDef(
        "TFText>FastSentencepieceTokenize",
        fast_sentencepiece_tokenize,
        expensive=True,
        memory=_tokenize_memory,
        constants={0: Encoder},
    ),
    KernelDef(
        "TFText>FastSentencepieceDetokenize",
        fast_sentencepiece_detokenize,
        memory=_detokenize_memory,
        constants={0: Decoder},
    ),
)
