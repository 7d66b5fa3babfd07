"""Kernels for audio: WAV files, spectrograms, mel-frequency cepstral coefficients.

TF: tensorflow/core/kernels/decode_wav_op.cc, encode_wav_op.cc, spectrogram.cc, mfcc.cc,
mfcc_mel_filterbank.cc, tensorflow/core/lib/wav/wav_io.cc
"""

from __future__ import annotations

import functools
import struct

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import string_tensor

FULL_SCALE = 1 << 15  # the 16-bit sample value that corresponds to 1.0
# the lower bound of a band's energy, so that the logarithm of the energy is finite
FILTERBANK_FLOOR = 1e-12


def decode_wav(
    contents: np.ndarray, *, desired_channels: int, desired_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """DecodeWav: decode a 16-bit PCM file; return (samples, sample rate).

    The samples are float32 `[samples, channels]` in [-1, 1).
    """
    if np.ndim(contents):
        raise InvalidArgumentError(
            f"contents must be scalar, got shape {shape_text(np.shape(contents))}"
        )
    data = bytes(np.asarray(contents, object).item())
    channels, rate, start = _wav_header(data)
    samples, start = _data_chunk(data, start, 2 * channels)
    audio = samples.reshape(-1, channels).astype(np.float32) / np.float32(FULL_SCALE)
    if desired_channels >= 0:
        check_allocation((len(audio), desired_channels), np.float32)
        audio = audio[:, np.minimum(np.arange(desired_channels), channels - 1)]
    if desired_samples >= 0:
        check_allocation((desired_samples, audio.shape[1]), np.float32)
        silence = np.zeros((max(desired_samples - len(audio), 0), audio.shape[1]), np.float32)
        audio = np.concatenate([audio[:desired_samples], silence])
    return audio, np.array(rate, np.int32)


def _field(data: bytes, start: int, size: int) -> bytes:
    found = data[start : start + size]
    if len(found) < size:
        raise InvalidArgumentError("Data too short when trying to read string")
    return found


def _expect(data: bytes, start: int, text: bytes) -> None:
    found = _field(data, start, len(text))
    if found != text:
        raise InvalidArgumentError(
            f"Header mismatch: Expected {text.decode()} but found {found.decode('latin-1')}"
        )


def _wav_header(data: bytes) -> tuple[int, int, int]:
    """Parse the header.

    Return (channels, sample rate in Hz, byte offset after the format chunk).
    """
    _expect(data, 0, b"RIFF")
    _expect(data, 8, b"WAVE")
    if _field(data, 12, 4) != b"fmt ":
        raise InvalidArgumentError(f"Unexpected field {data[12:16].decode('latin-1')}")
    size, audio_format, channels, rate, _, _, bits = struct.unpack("<IHHIIHH", _field(data, 16, 20))
    if size not in (16, 18):
        raise InvalidArgumentError(
            f"Bad format chunk size for WAV: Expected 16 or 18, but got{size}"
        )
    if audio_format != 1:
        raise InvalidArgumentError(
            f"Bad audio format for WAV: Expected 1 (PCM), but got{audio_format}"
        )
    if channels < 1:
        raise InvalidArgumentError(
            f"Bad number of channels for WAV: Expected at least 1, but got {channels}"
        )
    if bits != 16:
        raise InvalidArgumentError(f"Can only read 16-bit WAV files, but received {bits}")
    return channels, rate, 20 + size


def _data_chunk(data: bytes, start: int, frame_size: int) -> tuple[np.ndarray, int]:
    """Find the data chunk and skip other chunks; return (samples, byte offset of the end)."""
    while start < len(data):
        kind = _field(data, start, 4)
        (size,) = struct.unpack("<I", _field(data, start + 4, 4))
        start += 8
        if kind == b"data":
            count = size // frame_size * frame_size
            return np.frombuffer(_field(data, start, count), "<i2"), start + size
        start += size
    raise InvalidArgumentError("No data chunk found in WAV")


def encode_wav(audio: np.ndarray, sample_rate: np.ndarray) -> np.ndarray:
    """EncodeWav: encode `audio` `[samples, channels]` in [-1, 1] as a 16-bit PCM WAV file.

    Return the contents of the file as a scalar string.
    """
    if audio.ndim != 2:
        raise InvalidArgumentError(f"audio must be 2-dimensional{shape_text(audio.shape)}")
    rate = _sample_rate(sample_rate)
    channels = audio.shape[1]
    if not 0 < channels < 1 << 16:
        raise InvalidArgumentError(f"num_channels must be in (0, 2^16), got: {channels}")
    if not 0 < rate < 1 << 32:
        shown = rate % (1 << 64)  # TensorFlow prints the rate as an unsigned number
        raise InvalidArgumentError(f"sample_rate must be in (0, 2^32), got: {shown}")
    scaled = audio * np.float32(FULL_SCALE)
    rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)
    body = np.clip(np.nan_to_num(rounded), -FULL_SCALE, FULL_SCALE - 1).astype("<i2").tobytes()
    frame = 2 * channels
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF", 36 + len(body), b"WAVE", b"fmt ", 16, 1, channels, rate,
        (rate * frame) % (1 << 32), frame % (1 << 16), 16, b"data", len(body),
    )  # fmt: skip
    return string_tensor([header + body], ())


def _sample_rate(sample_rate: np.ndarray) -> int:
    if np.ndim(sample_rate):
        raise InvalidArgumentError(
            "Input sample_rate should be a scalar tensor, got "
            f"{shape_text(np.shape(sample_rate))} instead."
        )
    return int(sample_rate)


def audio_spectrogram(
    audio: np.ndarray, *, window_size: int, stride: int, magnitude_squared: bool
) -> np.ndarray:
    """AudioSpectrogram: return magnitudes of the short-time Fourier transform of `audio`.

    `audio` is `[samples, channels]`; the result is float32 `[channels, windows, bins]`, squared if
    `magnitude_squared` is true. Each window is weighted by a Hann function and padded with zeros to
    a power of two.
    """
    if window_size <= 1:
        raise InvalidArgumentError(f"window size must be > 1, got {window_size}")
    if stride <= 0:
        raise InvalidArgumentError(f"stride must be strictly positive, got {stride}")
    if audio.ndim != 2:
        raise InvalidArgumentError(f"input must be 2-dimensional{shape_text(audio.shape)}")
    samples, channels = audio.shape
    size = 1 << (window_size - 1).bit_length()
    count = (samples - window_size) // stride + 1 if samples >= window_size else 0
    check_allocation((channels, count, size), np.complex128)
    if count == 0:
        check_allocation((size,), np.float64)
        return np.zeros((channels, 0, size // 2 + 1), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(audio.T, window_size, axis=1)[:, ::stride]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window_size) / window_size)
    spectrum = np.fft.rfft(frames * hann, size, axis=2)
    squared = np.square(spectrum.real) + np.square(spectrum.imag)
    return (squared if magnitude_squared else np.sqrt(squared)).astype(np.float32)


def mfcc(
    spectrogram: np.ndarray,
    sample_rate: np.ndarray,
    *,
    upper_frequency_limit: float,
    lower_frequency_limit: float,
    filterbank_channel_count: int,
    dct_coefficient_count: int,
) -> np.ndarray:
    """Mfcc: return mel-frequency cepstral coefficients `[channels, windows, coefficients]`.

    `spectrogram` contains squared magnitudes `[channels, windows, bins]`.
    """
    if spectrogram.ndim != 3:
        raise InvalidArgumentError(
            f"spectrogram must be 3-dimensional{shape_text(spectrogram.shape)}"
        )
    rate, bins, bands = _sample_rate(sample_rate), spectrogram.shape[2], filterbank_channel_count
    is_usable = (
        rate >= 1
        and bins >= 2
        and bands >= 1
        and 0 <= lower_frequency_limit < upper_frequency_limit
        and 1 <= dct_coefficient_count <= bands
    )
    if not is_usable:
        raise InvalidArgumentError(
            f"Mfcc initialization failed for channel count {bins}, sample rate {rate} and "
            f"filterbank_channel_count {bands}"
        )
    if upper_frequency_limit / _hz_per_bin(rate, bins) >= bins:
        # The bands exceed the spectrum. In this case TensorFlow logs an error and returns zeros.
        return np.zeros((*spectrogram.shape[:2], dct_coefficient_count), np.float32)
    check_allocation((bins, bands + 2), np.float64)
    check_allocation((bands, dct_coefficient_count), np.float64)
    filters = _mel_filters(bins, rate, bands, lower_frequency_limit, upper_frequency_limit)
    with np.errstate(invalid="ignore"):
        magnitudes = np.sqrt(spectrogram.astype(np.float64))
    # Bins outside all bands have weight 0. They must be left out, because 0 times NaN would be NaN.
    within = np.flatnonzero(filters.any(-1))
    energies = magnitudes[..., within] @ filters[within]
    logarithms = np.log(np.maximum(energies, FILTERBANK_FLOOR))
    positions = np.arange(bands) + 0.5
    cosines = np.cos(np.outer(positions, np.arange(dct_coefficient_count)) * (np.pi / bands))
    return (logarithms @ cosines * np.sqrt(2 / bands)).astype(np.float32)


def _mel(frequency: np.ndarray | float) -> np.ndarray:
    return 1127 * np.log1p(frequency / 700)


def _hz_per_bin(rate: int, bins: int) -> float:
    return 0.5 * rate / (bins - 1)


@functools.lru_cache(maxsize=8)
def _mel_filters(bins: int, rate: int, bands: int, lower: float, upper: float) -> np.ndarray:
    """Return weights `[bins, bands]` of overlapping triangular filters, evenly spaced in mel."""
    low, high = _mel(lower), _mel(upper)
    centres = low + (high - low) / (bands + 1) * np.arange(1, bands + 2)
    hz_per_bin = _hz_per_bin(rate, bins)
    first, last = int(1.5 + lower / hz_per_bin), int(upper / hz_per_bin)
    each_bin = np.arange(max(first, 0), min(last + 1, bins))
    mel = _mel(each_bin * hz_per_bin)
    band = np.minimum(np.searchsorted(centres[:bands], mel, side="left"), bands) - 1
    edges = np.concatenate([[low], centres])
    weights = (edges[band + 2] - mel) / (edges[band + 2] - edges[band + 1])
    # the first and the last column are extra; they are dropped below
    filters = np.zeros((bins, bands + 2))
    filters[each_bin, band + 1] += weights
    filters[each_bin, band + 2] += 1 - weights
    return filters[:, 1:-1]


KERNELS = (
    KernelDef("AudioSpectrogram", audio_spectrogram),
    KernelDef("DecodeWav", decode_wav),
    KernelDef("EncodeWav", encode_wav),
    KernelDef("Mfcc", mfcc),
)
