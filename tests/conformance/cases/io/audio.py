"""WAV files, spectrograms, cepstral coefficients."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(18)
SAMPLES = [0, 100, -32768, 32767, 5, 6]
LEVELS = np.array([[0], [0.5], [-1], [1], [2], [-3], [0.1], [-0.1], [1e-5]], np.float32)
NOISE = RNG.normal(size=(50, 2)).astype(np.float32)
SPECTRA = np.square(RNG.normal(size=(2, 3, 65))).astype(np.float32)
RATE = np.int32(8000)


def wav(
    samples: list[int] = SAMPLES,
    channels: int = 1,
    bits: int = 16,
    kind: int = 1,
    chunk: bytes = b"",
) -> bytes:
    data = np.array(SAMPLES, "<i2").tobytes()
    layout = (kind, channels, 8000, 8000 * channels * 2, channels * 2, bits)
    head = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
    head += struct.pack("<IHHIIHH", 16, *layout) + chunk
    return head + b"data" + struct.pack("<I", len(data)) + data


EXTRA = b"LIST" + struct.pack("<I", 4) + b"abcd"
FILES: tuple[tuple[bytes, dict[str, Any]], ...] = (
    (wav(), {}),
    (wav(channels=2), {}),
    (wav(), {"desired_channels": 2}),
    (wav(channels=2), {"desired_channels": 1}),
    (wav(), {"desired_samples": 3}),
    (wav(), {"desired_samples": 9}),
    (wav(chunk=EXTRA), {}),
    (b"", {}),
    (b"RIFFxx", {}),
    (wav()[:30], {}),
    (wav()[:48], {}),
    (wav(bits=8), {}),
    (wav(kind=3), {}),
    (wav(channels=0), {}),
    (b"X" * 60, {}),
    (wav().replace(b"data", b"dbta"), {}),
    (wav().replace(b"WAVE", b"WBVE"), {}),
    (wav().replace(b"fmt ", b"fmx "), {}),
)


def spectrogram(audio: np.ndarray, window: int, stride: int, **attrs: Any) -> Case:
    return case("AudioSpectrogram", audio, window_size=window, stride=stride, **attrs)


CASES = (
    *(case("DecodeWav", np.array(f, object), message=True, **attrs) for f, attrs in FILES),
    case("DecodeWav", np.array([wav()], object), message=True),
    *(
        case("EncodeWav", audio, np.int32(rate), message=True)
        for audio, rate in (
            (LEVELS, 8000), (np.repeat(LEVELS, 2, 1), 44100), (LEVELS[:0], 8000), (LEVELS[0], 8000),
            (LEVELS, [8000]), (LEVELS[:, :0], 8000), (LEVELS, 0), (LEVELS, -5),
        )
    ),
    *(
        spectrogram(NOISE, window, stride, magnitude_squared=squared)
        for window, stride in ((16, 8), (10, 7), (2, 1), (60, 7), (50, 60))
        for squared in (False, True)
    ),
    spectrogram(NOISE[:0], 10, 7),
    spectrogram(NOISE[0], 10, 7, message=True),
    spectrogram(NOISE, 1, 7),
    spectrogram(NOISE, 10, 0),
    *(
        case("Mfcc", SPECTRA, np.int32(rate), **attrs)
        for rate, attrs in (
            (8000, {}), (16000, {}), (22050, {"dct_coefficient_count": 40}), (100, {}),
            (8000, {"upper_frequency_limit": 3000.0, "lower_frequency_limit": 300.0}),
            (8000, {"filterbank_channel_count": 20}),
        )
    ),
    *(
        case("Mfcc", *inputs, message=True, **attrs)
        for inputs, attrs in (
            ((SPECTRA[0], RATE), {}), ((SPECTRA, [8000]), {}), ((SPECTRA, np.int32(0)), {}),
            ((SPECTRA, RATE), {"dct_coefficient_count": 50}),
            ((SPECTRA, RATE), {"upper_frequency_limit": 10.0}),
            ((SPECTRA, RATE), {"filterbank_channel_count": 0}),
        )
    ),
)  # fmt: skip
