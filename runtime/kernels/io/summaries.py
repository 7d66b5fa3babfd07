"""Kernels of the summary ops, which put tensors into serialized Summary messages.

TF: tensorflow/core/kernels/summary_op.cc, summary_tensor_op.cc, summary_audio_op.cc
"""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Iterable

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.io.varint import encode_varint
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, items_of, scalar_string, string_tensor
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.framework.tensor_text import readable

_MAX_INT16 = 32767  # the largest sample of a WAV file
# the wire key of field 1 (length-delimited), both of Summary and of Summary.Value
_VALUE = _TAG = b"\x0a"


def serialized_summary(values: Iterable[tuple[bytes, pb.Summary.Value]]) -> np.ndarray:
    """Serialize (tag, value) pairs as a Summary; a tag may be any bytes, not only UTF-8."""
    parts = []
    for tag, value in values:
        head = _TAG + encode_varint(len(tag)) + tag if tag else b""
        body = head + value.SerializeToString(deterministic=True)
        parts.append(_VALUE + encode_varint(len(body)) + body)
    return string_tensor([b"".join(parts)], ())


def _tag(value: np.ndarray, what: str = "tag") -> bytes:
    array = as_strings(value)
    if array.ndim:
        raise InvalidArgumentError(f"{what} must be scalar, got shape {shape_text(array.shape)}")
    return scalar_string(array)


def scalar_summary(tags: np.ndarray, values: np.ndarray) -> np.ndarray:
    """ScalarSummary: return a summary with one number for each tag."""
    names, numbers = as_strings(tags), np.asarray(values)
    if names.shape != numbers.shape:
        only = f" (tag '{readable(names.item())}')" if names.size == 1 else ""
        raise InvalidArgumentError(
            f"tags and values are not the same shape: {shape_text(names.shape)} != "
            f"{shape_text(numbers.shape)}{only}"
        )
    pairs = zip(names.ravel().tolist(), numbers.astype(np.float64).ravel(), strict=True)
    return serialized_summary(
        (name, pb.Summary.Value(simple_value=float(np.float32(number)))) for name, number in pairs
    )


@functools.cache
def _default_limits() -> np.ndarray:
    """Return the upper limits of histogram buckets: 0, and numbers of both signs.

    The magnitudes go from 1e-12 to 1e20, each 10 % more than the previous magnitude. The last
    magnitude is the largest float64.
    """
    positive = []
    limit = 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(np.finfo(np.float64).max)
    return np.array([-each for each in reversed(positive)] + [0.0] + positive)


def histogram_summary(context: OpKernelContext, tag: np.ndarray, values: np.ndarray) -> np.ndarray:
    """HistogramSummary: return a histogram of `values`.

    The width of its buckets grows exponentially.
    """
    name = _tag(tag, "tags")
    numbers = np.asarray(values).astype(np.float64).ravel()
    if not np.isfinite(numbers).all():
        first = numbers[~np.isfinite(numbers)][0]
        what = "Nan in summary histogram" if np.isnan(first) else "Infinity in Histogram"
        raise InvalidArgumentError(f"{what} for: {context.node.name}")
    limits = _default_limits()
    counts = np.bincount(np.searchsorted(limits, numbers, side="right"), minlength=len(limits))
    histogram = pb.HistogramProto(
        # argmin and argmax return the first of equal elements, so the sign of a zero is kept.
        min=numbers[numbers.argmin()] if numbers.size else limits[-1],
        max=numbers[numbers.argmax()] if numbers.size else -limits[-1],
        num=numbers.size,
        sum=_sequential_sum(numbers),
        sum_squares=_sequential_sum(np.square(numbers)),
    )
    bucket = 0
    while bucket < len(limits):
        # Consecutive empty buckets are merged into one bucket.
        first = bucket
        while counts[bucket] <= 0 and bucket + 1 < len(limits) and counts[bucket + 1] <= 0:
            bucket += 1
        histogram.bucket_limit.append(limits[bucket])
        histogram.bucket.append(float(counts[first : bucket + 1].sum()))
        bucket += 1
    return serialized_summary([(name, pb.Summary.Value(histo=histogram))])


def _sequential_sum(numbers: np.ndarray) -> float:
    """Add `numbers` one after the other, as TensorFlow does.

    numpy adds pairwise, which rounds differently. The sum starts from 0, so that the sum of
    negative zeros is 0.
    """
    return float(0.0 + np.add.accumulate(numbers)[-1]) if numbers.size else 0.0


def merge_summary(*inputs: np.ndarray) -> np.ndarray:
    """MergeSummary: merge the values of several summaries into one.

    Raises InvalidArgumentError if a tag occurs twice.
    """
    merged = pb.Summary()
    tags: set[str] = set()
    for each in inputs:
        for item in items_of(each):
            try:
                summary = pb.Summary.FromString(item)
            except DecodeError:
                raise InvalidArgumentError("Could not parse one of the summary inputs") from None
            for value in summary.value:
                if value.tag in tags:
                    raise InvalidArgumentError(
                        f"Duplicate tag {value.tag} found in summary inputs "
                    )
                tags.add(value.tag)
                merged.value.append(value)
    return string_tensor([merged.SerializeToString(deterministic=True)], ())


def tensor_summary(context: OpKernelContext, tensor: np.ndarray, *, T: DataType) -> np.ndarray:  # noqa: N803
    """TensorSummary: return a summary with `tensor` under the node's name."""
    value = pb.Summary.Value(node_name=context.node.name, tensor=_tensor_proto(tensor, T))
    return serialized_summary([(b"", value)])


def tensor_summary_v2(
    tag: np.ndarray,
    tensor: np.ndarray,
    serialized_summary_metadata: np.ndarray,
    *,
    T: DataType,  # noqa: N803
) -> np.ndarray:
    """TensorSummaryV2: return a summary with `tensor` and metadata under `tag`."""
    if np.ndim(serialized_summary_metadata):
        raise InvalidArgumentError("serialized_summary_metadata must be scalar")
    name, value = _tag(tag), pb.Summary.Value(tensor=_tensor_proto(tensor, T))
    value.metadata.SetInParent()
    with contextlib.suppress(DecodeError):  # like TensorFlow, ignore a failure to parse
        value.metadata.MergeFromString(scalar_string(serialized_summary_metadata))
    return serialized_summary([(name, value)])


def _tensor_proto(tensor: np.ndarray, data_type: DataType) -> pb.TensorProto:
    return tensor_to_proto(np.asarray(tensor, data_type.numpy), data_type)


def audio_summary_v2(
    tag: np.ndarray, tensor: np.ndarray, sample_rate: np.ndarray, *, max_outputs: int
) -> np.ndarray:
    """AudioSummaryV2: encode the first `max_outputs` clips of `tensor` as WAV files.

    `tensor` is [batch, frames] or [batch, frames, channels].
    """
    name = _tag(tag)
    clips, rate = np.asarray(tensor), float(np.asarray(sample_rate).item())
    if clips.ndim not in (2, 3):
        raise InvalidArgumentError(f"Tensor must be 3-D or 2-D, got: {shape_text(clips.shape)}")
    if not rate > 0:
        raise InvalidArgumentError("sample_rate must be > 0")
    frames = max(round(rate), 1) if rate < 2**63 else 2**63  # the number of frames per second
    if frames >= 2**32 and len(clips) and max_outputs:
        raise InvalidArgumentError(f"sample_rate must be in (0, 2^32), got: {frames}")
    channels = clips.shape[2] if clips.ndim == 3 else 1
    if not channels and len(clips) and max_outputs:
        raise InvalidArgumentError("audio is null")
    clips = clips.reshape((*clips.shape[:2], channels))
    values = []
    for index, clip in enumerate(clips[:max_outputs]):
        suffix = b"/audio" if max_outputs == 1 else f"/audio/{index}".encode()
        audio = pb.Summary.Audio(
            sample_rate=rate,
            num_channels=clip.shape[1],
            length_frames=clip.shape[0],
            encoded_audio_string=_wav(clip, frames),
            content_type="audio/wav",
        )
        values.append((name + suffix, pb.Summary.Value(audio=audio)))
    return serialized_summary(values)


def audio_summary(
    tag: np.ndarray, tensor: np.ndarray, *, sample_rate: float, max_outputs: int
) -> np.ndarray:
    """AudioSummary: AudioSummaryV2 with the rate as an attribute."""
    return audio_summary_v2(
        tag, tensor, np.asarray(sample_rate, np.float32), max_outputs=max_outputs
    )


def _wav(clip: np.ndarray, rate: int) -> bytes:
    """Encode `clip` [frames, channels] in [−1, 1] as a WAV file of 16-bit samples at `rate` Hz."""
    scaled = np.rint(np.nan_to_num(clip) * (_MAX_INT16 + 1))
    samples = np.clip(scaled, -_MAX_INT16 - 1, _MAX_INT16)
    data, channels = samples.astype("<i2").tobytes(), clip.shape[1]
    rates = (rate, rate * channels * 2 % (1 << 32))
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, *rates, channels * 2, 16)
    body = b"WAVE" + head + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI", b"RIFF", len(body)) + body


KERNELS = (
    KernelDef("AudioSummary", audio_summary),
    KernelDef("AudioSummaryV2", audio_summary_v2),
    KernelDef("HistogramSummary", histogram_summary),
    KernelDef("MergeSummary", merge_summary),
    KernelDef("ScalarSummary", scalar_summary),
    KernelDef("TensorSummary", tensor_summary),
    KernelDef("TensorSummaryV2", tensor_summary_v2),
)
