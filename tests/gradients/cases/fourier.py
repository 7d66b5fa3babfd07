"""Fourier transforms of real signals; those of complex signals are among linear algebra."""

from __future__ import annotations

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

WAVE = np.sin(np.arange(60) * 1.3 + 0.2).reshape(3, 4, 5)
SPECTRUM = WAVE[..., :4] + 0.5j * np.cos(np.arange(48) * 0.7).reshape(3, 4, 4)


def _by_length(op: str, *length: int) -> Body:
    numbers = np.array(length, np.int32)
    spectrum = "complex128"
    attrs = {"Tcomplex": spectrum} if op.startswith("R") else {"Treal": "float64"}
    return lambda x: getattr(ops, op)(x, numbers, **attrs)


CASES: dict[str, GradientCase] = {
    "RFFT_odd": case(_by_length("RFFT", 5), WAVE),
    "RFFT_even": case(_by_length("RFFT", 4), WAVE[..., :4]),
    "RFFT_single": case(lambda x: ops.RFFT(x, [4]), WAVE[..., :4].astype(np.float32)),
    "RFFT2D_odd": case(_by_length("RFFT2D", 4, 5), WAVE),
    "RFFT2D_even": case(_by_length("RFFT2D", 4, 4), WAVE[..., :4]),
    "IRFFT_odd": case(_by_length("IRFFT", 7), SPECTRUM),
    "IRFFT_even": case(_by_length("IRFFT", 6), SPECTRUM),
    "IRFFT_single": case(lambda x: ops.IRFFT(x, [6]), SPECTRUM.astype(np.complex64)),
    "IRFFT2D_odd": case(_by_length("IRFFT2D", 4, 7), SPECTRUM),
    "IRFFT2D_even": case(_by_length("IRFFT2D", 4, 6), SPECTRUM),
}
