"""The ops of SentencePiece models, through the library `sentencepiece`.

TF: tensorflow_text/core/kernels/sentencepiece_kernels.cc
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import sentencepiece

from runtime.foundation.errors import InternalError, InvalidArgumentError, OutOfRangeError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import Resource, ResourceHandle
from runtime.framework.resource_op_kernel import resource_handle
from runtime.framework.string_tensor import items_of, string_tensor
from runtime.framework.tensor_value import TensorValue

_TEXTS_AT_ONCE = 256  # between two looks at whether the step has been cancelled
_BYTES_OF_TOKEN = 400  # a token as the library's message, its number, and its text
T = TypeVar("T")


class SentencePieceModel(Resource):
    """A loaded model; it never changes, so that any thread may use it."""

    type_name = "SentencepieceResource"

    def __init__(self, model: bytes) -> None:
        """Raise InvalidArgumentError if the model is empty or damaged."""
        if not model:
            raise InvalidArgumentError("Model argument must be specified.")
        self.processor = sentencepiece.SentencePieceProcessor()
        self._bytes = 8 * len(model)
        try:
            self.processor.LoadFromSerializedProto(model)
        except Exception as error:  # the library raises several classes
            raise InvalidArgumentError(f"The SentencePiece model is damaged: {error}") from None

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the model in memory."""
        return self._bytes, ()

    def fork(self) -> SentencePieceModel:
        """Return the model itself."""
        return self


def sentencepiece_op(
    context: OpKernelContext, *, model: str, container: str, shared_name: str
) -> ResourceHandle:
    """SentencepieceOp: return the handle of a model, which the first call loads."""
    return resource_handle(
        context,
        container,
        shared_name,
        SentencePieceModel,
        lambda _: SentencePieceModel(model.encode("utf-8", "surrogateescape")),
    )


def _model_of(context: OpKernelContext, handle: ResourceHandle) -> Any:
    resource = handle.resource
    if not isinstance(resource, SentencePieceModel):
        resource = context.resources.look_up(handle.container, SentencePieceModel, handle.name)
    return resource.processor


def _one(name: str, value: np.ndarray) -> Any:
    if np.ndim(value):
        raise InvalidArgumentError(f"{name} must be a scalar, got shape {list(np.shape(value))}")
    return np.asarray(value).item()


class _Token(NamedTuple):
    """A token: its number and text, its first byte in the text that is encoded, and its end."""

    id: int
    piece: bytes
    begin: int
    end: int


class _Encoder:
    """Encodes texts with the arguments of an op."""

    def __init__(
        self,
        processor: Any,
        nbest_size: np.ndarray,
        alpha: np.ndarray,
        options: tuple[bool, bool, bool],
        return_nbest: bool,
    ) -> None:
        self._processor = processor
        self._nbest_size, self._alpha = np.asarray(nbest_size), np.asarray(alpha)
        self._return_nbest = return_nbest
        add_bos, add_eos, self._reverse = options
        self._before = _control(processor, processor.bos_id(), "<s>") if add_bos else ()
        self._after = _control(processor, processor.eos_id(), "</s>") if add_eos else ()
        if return_nbest and (self._nbest_size.ndim or self._nbest_size < 1):
            raise InvalidArgumentError(
                "When return_nbest is true nbest_size must be a scalar >= 1; got "
                f"{self._nbest_size.tolist()}"
            )

    def rows(self, texts: list[bytes]) -> list[list[_Token]]:
        """Return the tokens of each text, or of its best encodings one after the other."""
        for name, value in (("nbest_size", self._nbest_size), ("alpha", self._alpha)):
            if value.ndim > 1 or (value.ndim == 1 and len(value) != len(texts)):
                raise InvalidArgumentError(
                    f"{name} must be a scalar or have one element for each of {len(texts)} texts, "
                    f"got shape {list(value.shape)}"
                )
        if not self._return_nbest and not self._nbest_size.ndim and self._nbest_size in (0, 1):
            found = _in_parts(texts, self._encoded)
            return list(map(self._whole, found))
        return [
            self._whole(row)
            for place, text in enumerate(texts)
            for row in self._choices(place, text)
        ]

    def _whole(self, row: Any) -> list[_Token]:
        """Return the tokens of an encoding with those that the options add."""
        tokens = [_Token(each.id, _bytes(each.piece), each.begin, each.end) for each in row.pieces]
        tokens = [
            *(_Token(number, piece, 0, 0) for number, piece in self._before),
            *tokens,
            *(_Token(number, piece, 0, 0) for number, piece in self._after),
        ]
        return tokens[::-1] if self._reverse else tokens

    def _encoded(self, texts: list[bytes]) -> list[Any]:
        found: list[Any] = self._processor.encode(texts, return_type="proto")
        return found

    def _choices(self, place: int, text: bytes) -> list[Any]:
        check_task()
        size = int(self._nbest_size.flat[place if self._nbest_size.ndim else 0])
        if self._return_nbest:
            found = self._processor.nbest_encode(text, nbest_size=size, return_type="proto")
            return list(getattr(found, "nbests", found))
        if size in (0, 1):
            return self._encoded([text])
        alpha = float(self._alpha.flat[place if self._alpha.ndim else 0])
        return [
            self._processor.encode(
                text, return_type="proto", enable_sampling=True, nbest_size=size, alpha=alpha
            )
        ]


def _control(processor: Any, number: int, name: str) -> tuple[tuple[int, bytes], ...]:
    if number < 0:
        raise InternalError(f"id for `{name}` is not defined.")
    return ((number, _bytes(processor.id_to_piece(number))),)


def _in_parts(texts: list[bytes], call: Callable[[list[bytes]], list[T]]) -> list[T]:
    found: list[T] = []
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        check_task()
        found += call(texts[first : first + _TEXTS_AT_ONCE])
    return found


def _rows(context: OpKernelContext, return_nbest: bool, *arguments: Any) -> list[list[_Token]]:
    handle, texts, nbest_size, alpha, add_bos, add_eos, reverse = arguments
    options = (
        bool(_one("add_bos", add_bos)),
        bool(_one("add_eos", add_eos)),
        bool(_one("reverse", reverse)),
    )
    encoder = _Encoder(_model_of(context, handle), nbest_size, alpha, options, return_nbest)
    return encoder.rows(items_of(texts))


def _splits(rows: Sequence[Sequence[object]], dtype: DataType) -> np.ndarray:
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(dtype.numpy)


def _values(rows: list[list[_Token]], out_type: DataType) -> np.ndarray:
    if out_type == DataType.STRING:
        return string_tensor(token.piece for row in rows for token in row)
    return np.fromiter((token.id for row in rows for token in row), out_type.numpy)


def tokenize(
    context: OpKernelContext,
    sp_handle: ResourceHandle,
    texts: np.ndarray,
    nbest_size: np.ndarray,
    alpha: np.ndarray,
    add_bos: np.ndarray,
    add_eos: np.ndarray,
    reverse: np.ndarray,
    *,
    out_type: DataType,
    Tsplits: DataType,  # noqa: N803 # the attribute's name
    return_nbest: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """SentencepieceTokenizeOp: return (tokens `[t]`, row splits of the texts).

    With `nbest_size` beyond 1 or below 0 the encodings are sampled, with numbers of the library's.
    """
    rows = _rows(
        context, return_nbest, sp_handle, texts, nbest_size, alpha, add_bos, add_eos, reverse
    )
    return _values(rows, out_type), _splits(rows, Tsplits)


def tokenize_with_offsets(
    context: OpKernelContext,
    sp_handle: ResourceHandle,
    texts: np.ndarray,
    nbest_size: np.ndarray,
    alpha: np.ndarray,
    add_bos: np.ndarray,
    add_eos: np.ndarray,
    reverse: np.ndarray,
    *,
    out_type: DataType,
    Tsplits: DataType,  # noqa: N803 # the attribute's name
    return_nbest: bool,
) -> tuple[np.ndarray, ...]:
    """SentencepieceTokenizeWithOffsetsOp: return tokens, row splits, and the tokens' bytes.

    The last two are the first byte and the end of each token in its text, int64 `[t]`.
    """
    rows = _rows(
        context, return_nbest, sp_handle, texts, nbest_size, alpha, add_bos, add_eos, reverse
    )
    starts = np.fromiter((token.begin for row in rows for token in row), np.int64)
    ends = np.fromiter((token.end for row in rows for token in row), np.int64)
    return _values(rows, out_type), _splits(rows, Tsplits), starts, ends


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def detokenize(
    context: OpKernelContext,
    sp_handle: ResourceHandle,
    input_values: np.ndarray,
    input_splits: np.ndarray,
    add_bos: np.ndarray,
    add_eos: np.ndarray,
    reverse: np.ndarray,
) -> np.ndarray:
    """SentencepieceDetokenizeOp: return the texts of rows of tokens, numbers or strings.

    The control tokens are added here as they are to tokens, and make white space at their place.
    Raises OutOfRangeError for a number that the model does not have.
    """
    processor = _model_of(context, sp_handle)
    splits = np.asarray(input_splits).ravel()
    if splits.size and (
        splits[0] != 0 or splits[-1] > input_values.size or (np.diff(splits) < 0).any()
    ):
        raise InvalidArgumentError(
            f"input_splits must ascend from 0 to at most {input_values.size}, got {splits[:20]}"
        )
    if input_values.dtype.hasobject:
        tokens: list[Any] = [each.decode("utf-8", "replace") for each in items_of(input_values)]
    else:
        numbers = np.ravel(input_values)
        size = processor.get_piece_size()
        wrong = numbers[(numbers < 0) | (numbers >= size)]
        if wrong.size:
            raise OutOfRangeError(f"Invalid id: {wrong[0]}")
        tokens = numbers.tolist()
    is_text = input_values.dtype.hasobject
    before, after = (
        [piece.decode() if is_text else number for number, piece in added]
        for added in (
            _control(processor, processor.bos_id(), "<s>") if _one("add_bos", add_bos) else (),
            _control(processor, processor.eos_id(), "</s>") if _one("add_eos", add_eos) else (),
        )
    )
    texts = []
    for first, end in zip(splits[:-1].tolist(), splits[1:].tolist(), strict=True):
        check_task()
        row = [*before, *tokens[first:end], *after]
        if bool(_one("reverse", reverse)):
            row.reverse()
        texts.append(_bytes(processor.decode(row)) if row else b"")
    return string_tensor(texts)


def id_to_string(
    context: OpKernelContext, sp_handle: ResourceHandle, numbers: np.ndarray
) -> np.ndarray:
    """SentencepieceIdToStringOp: return the token of each number.

    Raises InvalidArgumentError for a number that the model does not have.
    """
    processor = _model_of(context, sp_handle)
    size = processor.get_piece_size()
    items = np.ravel(numbers).tolist()
    for number in items:
        if not 0 <= number < size:
            raise InvalidArgumentError(f"id {number} is not in [0, {size})")
    return string_tensor(
        (_bytes(processor.id_to_piece(number)) for number in items), np.shape(numbers)
    )


def string_to_id(
    context: OpKernelContext, sp_handle: ResourceHandle, tokens: np.ndarray
) -> np.ndarray:
    """SentencepieceStringToIdOp: return the number of each token; that of the unknown one else."""
    processor = _model_of(context, sp_handle)
    found = [processor.piece_to_id(each) for each in items_of(tokens)]
    return np.array(found, np.int32).reshape(np.shape(tokens))


def vocab_size(context: OpKernelContext, sp_handle: ResourceHandle) -> np.ndarray:
    """SentencepieceVocabSizeOp: return how many tokens the model has, int32."""
    return np.asarray(_model_of(context, sp_handle).get_piece_size(), np.int32)


def _memory(_handle: TensorValue, texts: np.ndarray, *_: TensorValue) -> int:
    """A token for each byte of the texts, and those that are added."""
    return _BYTES_OF_TOKEN * sum(len(each) + 4 for each in items_of(texts))


KERNELS = (
    KernelDef("SentencepieceDetokenizeOp", detokenize, expensive=True),
    KernelDef("SentencepieceIdToStringOp", id_to_string),
    KernelDef(
        "SentencepieceOp",
        sentencepiece_op,
        check=lambda node: SentencePieceModel(node.attr["model"].s),
    ),
    KernelDef("SentencepieceStringToIdOp", string_to_id),
    KernelDef("SentencepieceTokenizeOp", tokenize, expensive=True, memory=_memory),
    KernelDef(
        "SentencepieceTokenizeWithOffsetsOp", tokenize_with_offsets, expensive=True, memory=_memory
    ),
    KernelDef("SentencepieceVocabSizeOp", vocab_size),
)
