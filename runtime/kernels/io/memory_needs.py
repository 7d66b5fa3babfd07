"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple. What a file holds is not
known before it is read: `OF_FILES` lists the ops that read files, each of which is limited to
`tensor_limit()` a tensor.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.framework.allocation import tensor_limit
from runtime.framework.dtypes import DataType, from_number
from runtime.framework.memory_account import distinct
from runtime.framework.op_kernel import MemoryNeed, OpKernelContext
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.io.proto_decoding import binary_messages, columns_of, decoding_plan
from runtime.kernels.memory_sizes import (
    NUMBER,
    POINTER,
    STRING,
    dense,
    elements,
    longest_in,
    number,
    shape_of,
    size_of,
    text_in,
    volume,
)

V = TensorValue
FLOAT, DOUBLE = 4, 8
# A byte of a message may be a number of a list: one in the message, in a list and in an array.
EXAMPLE_BYTE = 40


def _bytes(value: V) -> list[bytes]:
    if isinstance(value, np.ndarray):
        return [each for each in distinct(value)[0].ravel().tolist() if isinstance(each, bytes)]
    return [value] if isinstance(value, bytes) else []


def _wav(contents: V, *, desired_channels: int, desired_samples: int) -> int:
    data = _bytes(contents)[0]
    channels = max(struct.unpack_from("<H", data, 22)[0], 1)
    frames = len(data) // (2 * channels)
    wide = max(desired_channels, 0) or channels
    longest = max(frames, desired_samples, 0)
    return 8 * len(data) + (2 * frames + 2 * longest) * wide * FLOAT + 16 * max(desired_channels, 0)


def _spectrogram(audio: V, *, window_size: int, stride: int) -> int:
    samples, channels = shape_of(audio)
    size = 1 << max(window_size - 1, 1).bit_length()
    count = max((samples - window_size) // max(stride, 1) + 1, 0)
    # frames in float64, their spectrum in complex128, and its squares
    return (
        channels * count * (window_size * DOUBLE + (size // 2 + 1) * 60) + window_size * 6 * DOUBLE
    )


def _mfcc(
    spectrogram: V, sample_rate: V, *, filterbank_channel_count: int, dct_coefficient_count: int
) -> int:
    bands, rows = max(filterbank_channel_count, 0), volume(shape_of(spectrogram)[:2])
    bins = (shape_of(spectrogram) or (0,))[-1]
    filters = 2 * bins * (bands + 2) + 4 * bands * max(dct_coefficient_count, 0) + 12 * bins
    results = rows * (3 * bands + 2 * max(dct_coefficient_count, 0))
    return (filters + results + 2 * elements(spectrogram) + 12 * bands) * DOUBLE


def _csv(records: V, *defaults: V, OUT_TYPE: Sequence[DataType]) -> int:
    columns = elements(records) * sum(each.numpy.itemsize + 2 * POINTER for each in OUT_TYPE)
    # a field has at least one byte and its delimiter
    return columns + text_in(records) * (STRING + 2 * NUMBER) // 2 + elements(records) * 4 * STRING


def _raw(bytes: V) -> int:
    return 6 * text_in(bytes) + elements(bytes) * STRING


def _padded_raw(input_bytes: V, fixed_length: V) -> int:
    each = max(number(fixed_length), 0) + STRING
    return 3 * elements(input_bytes) * each


# A value has at least one byte of its message; tensors that may get larger are counted before.
_COUNTED_FROM = 1 << 26
_LINKED_IN = 1 << 18  # descriptors of the messages that are linked in, at the first call


def _descriptors(source: str) -> int:
    return _LINKED_IN + 60 * len(source)


def _decoded_messages(
    context: OpKernelContext, bytes: V, *, message_type: str, field_names: Sequence[str],
    output_types: Sequence[DataType], descriptor_source: str, message_format: str, sanitize: bool,
) -> int:  # fmt: skip
    rows, text = elements(bytes), text_in(bytes)
    each = [STRING if kind is DataType.STRING else kind.numpy.itemsize for kind in output_types]
    places = rows * max(longest_in(bytes), 1) * sum(each)
    if places > _COUNTED_FROM and message_format == "binary":
        plan = decoding_plan(context, message_type, field_names, output_types, descriptor_source)
        given = binary_messages(plan, _bytes(bytes), message_format, sanitize)
        columns = columns_of(plan, given)
        places = rows * sum(
            column.width * width for column, width in zip(columns, each, strict=True)
        )
    # of a value: in the message, a slice or a number of a list, and in an array; twice if parsed
    decoded = 2 * places + 4 * EXAMPLE_BYTE * text
    return _descriptors(descriptor_source) + decoded + rows * (len(each) + 1) * 6 * NUMBER


def _encoded_messages(sizes: V, *values: V, descriptor_source: str) -> int:
    # a number takes at most ten bytes and a tag of five, in an object of its own
    encoded = elements(*values) * (3 * STRING + NUMBER) + 4 * size_of(*values)
    return _descriptors(descriptor_source) + encoded + 20 * size_of(sizes)


# Deflate expands a byte to at most 1,032; strings that may expand to more than this are measured.
_EXPANSION = 1032
_MEASURED_FROM = 1 << 25
_WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}


def _decompressed(bytes: V, *, compression_type: str) -> int:
    bits = _WINDOW_BITS.get(compression_type)
    if bits is None:
        return size_of(bytes)
    most = text_in(bytes) * _EXPANSION
    if most > _MEASURED_FROM:
        most = sum(_expanded(each, bits) for each in _bytes(bytes))
    return 2 * most + 4 * size_of(bytes) + 32 * STRING


def _expanded(data: bytes, bits: int) -> int:
    """Return how long a compressed string is without compression, up to the tensor limit."""
    decompressor, length, chunk = zlib.decompressobj(bits), 0, data
    try:
        while chunk and length <= tensor_limit():
            length += len(decompressor.decompress(chunk, 1 << 20))
            chunk = decompressor.unconsumed_tail
    except zlib.error:
        return length
    return length


def _examples(serialized: V, columns: int, rest: Sequence[V]) -> int:
    """Return what parsing examples takes, without dense features that have a default."""
    rows = elements(serialized)
    each = 6 * STRING + columns * 12 * DOUBLE
    return EXAMPLE_BYTE * text_in(serialized) + rows * each + 2 * size_of(*rest)


def _dense(
    serialized: V, shapes: Sequence[PartialShape], types: Sequence[DataType], defaults: Sequence[V]
) -> int:
    rows, longest = elements(serialized), longest_in(serialized)
    result = 0
    for shape, data_type, default in zip(shapes, types, defaults, strict=False):
        width = data_type.numpy.itemsize
        if shape and shape[0] < 0:  # every row is padded to the longest
            result += rows * longest * (width + 1)
        else:
            values = max(elements(default), 0)
            result += rows * values * (NUMBER + 2 * width) + rows * 2 * POINTER
    return result


def _parse_example(
    serialized: V, names: V, *rest: V, Nsparse: int, Ndense: int, Tdense: Sequence[DataType],
    dense_shapes: Sequence[PartialShape],
) -> int:  # fmt: skip
    defaults = rest[Nsparse + Ndense :]
    every = _examples(serialized, Nsparse + Ndense, rest)
    return every + _dense(serialized, dense_shapes, Tdense, defaults)


def _parse_example_v2(
    serialized: V, names: V, sparse_keys: V, dense_keys: V, ragged_keys: V, *dense_defaults: V,
    Tdense: Sequence[DataType], dense_shapes: Sequence[PartialShape],
) -> int:  # fmt: skip
    columns = elements(sparse_keys, dense_keys, ragged_keys)
    every = _examples(serialized, columns, dense_defaults)
    return every + _dense(serialized, dense_shapes, Tdense, dense_defaults)


def _parse_single(
    serialized: V, *dense_defaults: V, sparse_keys: Sequence[str], Tdense: Sequence[DataType],
    dense_shapes: Sequence[PartialShape],
) -> int:  # fmt: skip
    columns = len(sparse_keys) + len(Tdense)
    every = _examples(serialized, columns, dense_defaults)
    return every + _dense(serialized, dense_shapes, Tdense, dense_defaults)


def _lists(
    serialized: V, keys: int, rest: Sequence[V], types: Sequence[DataType],
    shapes: Sequence[PartialShape], defaults: Sequence[V], list_types: Sequence[DataType],
    list_shapes: Sequence[PartialShape],
) -> int:  # fmt: skip
    rows, longest = elements(serialized), longest_in(serialized)
    every = _examples(serialized, keys + len(list_types), rest)
    every += _dense(serialized, shapes, types, defaults)
    for shape, data_type in zip(list_shapes, list_types, strict=False):
        # every row is padded to the most frames; a frame has two bytes at least
        frames = longest // 2
        frame = dense(shape or (), data_type.numpy)
        every += rows * min(frames * frame, (longest + 1) * 16) + rows * frames
    return every


def _sequence(
    serialized: V, debug_name: V, *context_dense_defaults: V,
    context_sparse_keys: Sequence[str], feature_list_sparse_keys: Sequence[str],
    Tcontext_dense: Sequence[DataType], context_dense_shapes: Sequence[PartialShape],
    feature_list_dense_types: Sequence[DataType],
    feature_list_dense_shapes: Sequence[PartialShape],
) -> int:  # fmt: skip
    keys = len(context_sparse_keys) + len(feature_list_sparse_keys) + len(Tcontext_dense)
    return _lists(
        serialized, keys, context_dense_defaults, Tcontext_dense, context_dense_shapes,
        context_dense_defaults, feature_list_dense_types, feature_list_dense_shapes,
    )  # fmt: skip


def _sequence_v2(
    serialized: V, *rest: V, Tcontext_dense: Sequence[DataType],
    context_dense_shapes: Sequence[PartialShape], feature_list_dense_types: Sequence[DataType],
    feature_list_dense_shapes: Sequence[PartialShape],
) -> int:  # fmt: skip
    defaults = rest[8:]
    return _lists(
        serialized, elements(*rest[1:8]), rest, Tcontext_dense, context_dense_shapes, defaults,
        feature_list_dense_types, feature_list_dense_shapes,
    )  # fmt: skip


def _single_sequence(
    serialized: V, *rest: V, Tcontext_dense: Sequence[DataType],
    context_dense_shapes: Sequence[PartialShape], feature_list_dense_types: Sequence[DataType],
    feature_list_dense_shapes: Sequence[PartialShape],
) -> int:  # fmt: skip
    defaults = rest[len(rest) - 1 - len(Tcontext_dense) : -1]
    return _lists(
        serialized, len(rest), rest, Tcontext_dense, context_dense_shapes, defaults,
        feature_list_dense_types, feature_list_dense_shapes,
    )  # fmt: skip


def _parse_tensor(serialized: V) -> int:
    data = b"".join(_bytes(serialized))
    try:
        proto = pb.TensorProto.FromString(data)
    except DecodeError:
        return 4 * len(data)
    # one value may stand for all elements of the shape
    sizes = [each.size for each in proto.tensor_shape.dim]
    return 2 * dense(sizes, from_number(proto.dtype)[0].numpy) + EXAMPLE_BYTE * len(data)


def _remapped(
    ckpt_path: V, old_tensor_name: V, row_remapping: V, col_remapping: V, initializing_values: V,
    *, num_rows: int, num_cols: int,
) -> int:  # fmt: skip
    result = max(num_rows, 0) * max(num_cols, 0)
    columns = max(num_cols, 0) * 3 * DOUBLE
    return result * 14 + columns + elements(row_remapping, col_remapping) * 4 * NUMBER


def _histogram(values: V) -> int:
    limits = 1 << 17  # the limits of buckets, and a message with all of them
    return limits + elements(values) * 7 * DOUBLE


def _histogram_summary(tag: V, values: V) -> int:
    return _histogram(values) + size_of(tag)


def _written_histogram(writer: V, step: V, tag: V, values: V) -> int:
    return 2 * _histogram(values) + 4 * size_of(tag)


def _picture(tensor: V, max_images: int) -> int:
    images = max((shape_of(tensor) or (0,))[0], 1)
    pixels = elements(tensor) // images
    shown = min(images, max(max_images, 0))
    return pixels * 16 * FLOAT + shown * (4 * pixels + 20 * STRING) + shown * pixels


def _image_summary(tag: V, tensor: V, *, max_images: int) -> int:
    compressor = 1 << 19
    return compressor + _picture(tensor, max_images) + shape_of(tensor)[0] * 2 * size_of(tag)


def _written_images(writer: V, step: V, tag: V, tensor: V, bad_color: V, *, max_images: int) -> int:
    return 3 * _image_summary(tag, tensor, max_images=max_images)


def _scalars(tags: V, values: V) -> int:
    return elements(tags) * 20 * STRING + 4 * size_of(tags, values)


def _audio(tag: V, tensor: V, *sample_rate: V) -> int:
    clips = (shape_of(tensor) or (0,))[0]
    return 8 * size_of(tensor) + clips * (2 * size_of(tag) + 20 * STRING)


def _written_audio(writer: V, step: V, tag: V, tensor: V, sample_rate: V) -> int:
    return 3 * _audio(tag, tensor, sample_rate)


def _serialized(tensor: V) -> int:
    return 6 * size_of(tensor)


def _saved(prefix: V, tensor_names: V, shape_and_slices: V, *tensors: V) -> int:
    # one tensor after the other is written; numbers are copied only if they are not contiguous
    largest = max((_encoded(each) for each in tensors), default=0)
    return largest + 16 * size_of(prefix, tensor_names, shape_and_slices) + len(tensors) * STRING


def _encoded(tensor: V) -> int:
    has_numbers = isinstance(tensor, np.ndarray | np.generic) and not tensor.dtype.hasobject
    return size_of(tensor) * (2 if has_numbers else 16)


def _immutable(*, dtype: DataType, shape: PartialShape) -> int:
    return dense(shape or (), dtype.numpy) * 2


OF_FILES = (
    "GenerateVocabRemapping", "MatchingFiles", "MergeV2Checkpoints", "ReadFile", "Restore",
    "RecordInput", "RestoreSlice", "RestoreV2",
)  # fmt: skip

MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "DecodeWav": _wav,
    "AudioSpectrogram": _spectrogram,
    "Mfcc": _mfcc,
    "ImmutableConst": _immutable,
    "DecodeCSV": _csv,
    "DecodeRaw": _raw,
    "DecodePaddedRaw": _padded_raw,
    "DecodeCompressed": _decompressed,
    "SaveV2": _saved,
    "ParseExample": _parse_example,
    "ParseExampleV2": _parse_example_v2,
    "ParseSingleExample": _parse_single,
    "ParseSequenceExample": _sequence,
    "ParseSequenceExampleV2": _sequence_v2,
    "ParseSingleSequenceExample": _single_sequence,
    "ParseTensor": _parse_tensor,
    "DecodeProtoV2": _decoded_messages,
    "EncodeProto": _encoded_messages,
    "LoadAndRemapMatrix": _remapped,
    "HistogramSummary": _histogram_summary,
    "WriteHistogramSummary": _written_histogram,
    "ImageSummary": _image_summary,
    "WriteImageSummary": _written_images,
    "ScalarSummary": _scalars,
    **dict.fromkeys(("AudioSummary", "AudioSummaryV2"), _audio),
    "WriteAudioSummary": _written_audio,
}

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(OF_FILES, 1),
    **dict.fromkeys(
        ("CloseSummaryWriter", "FlushSummaryWriter", "SummaryWriter", "WriteFile"), 1
    ),
    **dict.fromkeys(
        (
            "CreateSummaryFileWriter", "DecodeJSONExample", "EncodeWav", "ImportEvent",
            "MergeSummary", "Save", "SaveSlices", "SerializeTensor", "ShardedFilename",
            "ShardedFilespec", "TensorSummary", "TensorSummaryV2", "WriteGraphSummary",
            "WriteRawProtoSummary", "WriteScalarSummary", "WriteSummary",
        ),
        16,
    ),
}  # fmt: skip
