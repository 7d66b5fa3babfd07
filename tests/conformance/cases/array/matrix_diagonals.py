"""MatrixDiag, MatrixDiagPart, MatrixSetDiag in all versions, MatrixBandPart."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case, case

WIDE = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
BATCH = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
ALIGNS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
BANDS = ([-1, 2], [0, 1], [-2, -1], [1], [-2], [0], [-2, 3])
BAD_BANDS = ([2, 1], [5], [-3], [0, 1, 2])
ZERO = np.float32(0)
LINE, PAIR = np.array([1, 2], np.float32), np.array([[1, 2], [3, 4]], np.float32)
# (diagonal, k, rows, columns)
DIAGS = (
    (LINE, 1, -1, -1),
    (LINE, -1, 4, -1),
    (LINE, 3, 2, -1),
    (LINE, 0, 2, 5),
    (PAIR, [0, 1], -1, -1),
    (PAIR, [-1, 0], 3, 2),
    (PAIR, [-1, 0], 2, 3),
    (PAIR, 0, -1, -1),
)
BAD_DIAGS = (
    (LINE, 0, 3, 4),
    (LINE, 0, 1, 4),
    (LINE, 0, 4, 1),
    (PAIR, [1, 0], -1, -1),
    (np.float32(1), [0], -1, -1),
)
TYPES = (
    np.float16, np.float64, np.int8, np.int32, np.int64, np.uint8, np.complex64, np.bool_,
)  # fmt: skip


def int32(value: object) -> np.ndarray:
    return np.array(value, np.int32)


def band_of(matrix: np.ndarray, band: list[int]) -> np.ndarray:
    """Return new values for the diagonals of a band."""
    rows, columns = matrix.shape[-2:]
    longest = min(rows + min(band[-1], 0), columns - max(band[0], 0))
    shape = (*matrix.shape[:-2], band[-1] - band[0] + 1, longest)
    values = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) + 100
    return values[..., 0, :] if band[0] == band[-1] else values


def band_parts() -> list[Case]:
    limits = ((1, -1), (0, 0), (-1, 0), (1, 2), (-5, -1), (3, 3))
    cases = [
        case("MatrixBandPart", matrix, np.array(lower, t), np.array(upper, t))
        for matrix in (WIDE, BATCH)
        for lower, upper in limits
        for t in (np.int32, np.int64)
    ]
    cases += [
        case("MatrixBandPart", WIDE, np.int64(lower), np.int64(upper), message=True)
        for lower, upper in ((5, 0), (1, 9))
    ]
    return [
        *cases,
        case("MatrixBandPart", np.ones((0, 2), np.float32), np.int64(0), np.int64(0)),
        case("MatrixBandPart", LINE, np.int64(0), np.int64(0), message=True),
        case("MatrixBandPart", WIDE, np.array([1]), np.int64(0), message=True),
        *(case("MatrixBandPart", np.ones((2, 3), t), np.int64(0), np.int64(1)) for t in TYPES),
    ]


def parts() -> list[Case]:
    cases = [
        case("MatrixDiagPartV3", matrix, int32(band), np.float32(9), align=align)
        for matrix in (WIDE, BATCH)
        for band in BANDS[:5]
        for align in ALIGNS
    ]
    cases += [case("MatrixDiagPartV2", WIDE, int32(band), ZERO) for band in BANDS]
    cases += [case("MatrixDiagPartV2", WIDE, int32(band), ZERO, message=True) for band in BAD_BANDS]
    return [
        *cases,
        *(case("MatrixDiagPart", matrix) for matrix in (WIDE, BATCH, np.ones((2, 0), np.float32))),
        *(case("MatrixDiagPart", np.ones((2, 3), t)) for t in TYPES),
        case("MatrixDiagPart", LINE, message=True),
        case("MatrixDiagPartV2", LINE, int32([0]), ZERO, message=True),
    ]


def diags() -> list[Case]:
    cases = [
        case("MatrixDiagV2", diagonal, int32(k), int32(rows), int32(columns), np.float32(9))
        for diagonal, k, rows, columns in DIAGS
    ]
    cases += [
        case("MatrixDiagV2", diagonal, int32(k), int32(rows), int32(columns), ZERO, message=True)
        for diagonal, k, rows, columns in BAD_DIAGS
    ]
    cases += [
        case(
            "MatrixDiagV3",
            np.arange(1, 13, dtype=np.float32).reshape(2, 3, 2),
            int32([-1, 1]),
            int32(-1),
            int32(-1),
            ZERO,
            align=align,
        )
        for align in ALIGNS
    ]
    return [
        *cases,
        *(case("MatrixDiag", each) for each in (LINE, PAIR, np.zeros((2, 0), np.float32))),
        *(case("MatrixDiag", np.ones(2, t)) for t in TYPES),
        case("MatrixDiag", np.float32(1), message=True),
        case("MatrixDiagV2", LINE, int32(0), int32([3]), int32(-1), ZERO, message=True),
    ]


def sets() -> list[Case]:
    cases = [
        case("MatrixSetDiagV3", matrix, band_of(matrix, band), int32(band), align=align)
        for matrix in (WIDE, BATCH)
        for band in BANDS[:5]
        for align in ALIGNS
    ]
    cases += [case("MatrixSetDiagV2", WIDE, band_of(WIDE, band), int32(band)) for band in BANDS]
    return [
        *cases,
        case("MatrixSetDiag", WIDE, np.zeros(3, np.float32)),
        case("MatrixSetDiag", BATCH, np.zeros((2, 3), np.float32)),
        *(case("MatrixSetDiag", np.ones((2, 3), t), np.zeros(2, t)) for t in TYPES),
        case("MatrixSetDiag", WIDE, LINE, message=True),
        case("MatrixSetDiag", LINE, LINE, message=True),
        case("MatrixSetDiagV2", WIDE, LINE, int32(7), message=True),
        case("MatrixSetDiagV2", WIDE, PAIR, int32([1, 0]), message=True),
        case("MatrixSetDiagV2", WIDE, PAIR, int32(0), message=True),
    ]


def bad_bands() -> list[Case]:
    return [
        one
        for k in (int32([[0, 1]]), int32([]), int32([2, -1]), int32([5, 1]), int32([1, -7]))
        for one in (
            case("MatrixDiagPartV2", WIDE, k, np.float32(0), message=True),
            case("MatrixSetDiagV2", WIDE, LINE, k, message=True),
            case("MatrixDiagV2", PAIR, k, int32(-1), int32(-1), np.float32(0), message=True),
        )
    ]


CASES: tuple[Case, ...] = (*band_parts(), *parts(), *diags(), *sets(), *bad_bands())
