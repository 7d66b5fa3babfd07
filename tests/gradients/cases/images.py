"""Images: warping, scaling, patches, colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

IMAGE = np.sin(np.arange(100) ** 2 * 0.13 + 0.4).reshape(2, 5, 5, 2).astype(np.float32)
SOLID = np.sin(np.arange(128) ** 2 * 0.11 + 0.4).reshape(1, 4, 4, 4, 2).astype(np.float32)
WARP = np.array([[1.1, 0.2, -0.5, -0.1, 0.9, 0.25, 0.01, 0.02]], np.float32)
PAIR = np.concatenate([WARP, WARP * 0.5 + 0.1])
COLOURS = np.random.default_rng(5).uniform(0, 1, (4, 3, 3))
TIES = np.array(
    [
        [1, 1, 0.5],
        [0.5, 1, 1],
        [1, 0.5, 1],
        [0.5, 0.5, 1],
        [1, 0.5, 0.5],
        [0.5, 1, 0.5],
        [0.25, 0.25, 0.25],
        [0, 0, 0],
        [0, 0.5, 1],
        [1, 0, 0],
        [0, 0, 1],
        [1, 1, 0],
    ]
)


def _warp(version: str, interpolation: str, fill: str, transforms: Any = WARP) -> Body:
    more = [0.5] if version == "V3" else []
    op = getattr(ops, f"ImageProjectiveTransform{version}")
    return lambda x: op(x, transforms, [4, 6], *more, interpolation=interpolation, fill_mode=fill)


def _scaled(kernel: str, antialias: bool) -> Body:
    return lambda x: ops.ScaleAndTranslate(
        x, [4, 7], [0.75, 1.5], [0.5, -0.25], kernel_type=kernel, antialias=antialias
    )


def _patches(strides: list[int], rates: list[int], padding: str) -> Body:
    return lambda x: ops.ExtractImagePatches(
        x, ksizes=[1, 2, 3, 1], strides=strides, rates=rates, padding=padding
    )


CASES: dict[str, GradientCase] = {
    **{f"ImageProjectiveTransform{version}_{interpolation}_{fill}":
       case(_warp(version, interpolation, fill), IMAGE, tolerance=1e-4)
       for version in ("V2", "V3") for interpolation in ("NEAREST", "BILINEAR")
       for fill in ("CONSTANT", "REFLECT")},
    "ImageProjectiveTransformV3_pair":
        case(_warp("V3", "BILINEAR", "CONSTANT", PAIR), IMAGE, tolerance=1e-4),
    **{f"ScaleAndTranslate_{kernel}_{antialias}":
       case(_scaled(kernel, antialias), IMAGE, tolerance=1e-4)
       for kernel in ("lanczos3", "triangle") for antialias in (False, True)},
    "ExtractImagePatches": case(_patches([1, 1, 1, 1], [1, 1, 1, 1], "SAME"), IMAGE),
    "ExtractImagePatches_strided": case(_patches([1, 2, 1, 1], [1, 1, 2, 1], "VALID"), IMAGE),
    "ExtractVolumePatches": case(
        lambda x: ops.ExtractVolumePatches(
            x, ksizes=[1, 2, 3, 2, 1], strides=[1, 1, 2, 1, 1], padding="SAME"
        ),
        SOLID,
    ),
    "ExtractVolumePatches_valid": case(
        lambda x: ops.ExtractVolumePatches(
            x, ksizes=[1, 2, 1, 2, 1], strides=[1, 2, 1, 1, 1], padding="VALID"
        ),
        SOLID,
    ),
    "RGBToHSV": case(ops.RGBToHSV, COLOURS),
    "RGBToHSV_ties": case(ops.RGBToHSV, TIES),
}  # fmt: skip
