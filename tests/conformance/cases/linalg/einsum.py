"""Einsum: contractions, diagonals, sums, broadcasting dimensions, malformed equations."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

EQUATIONS = (
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ab,b->ba", (2, 3), (3,)),
    ("i,j->ij", (2,), (3,)),
    ("i,i->", (4,), (4,)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("abcd,aecd->acbe", (2, 3, 2, 4), (2, 5, 2, 4)),
    ("acbe,aecd->abcd", (2, 2, 3, 5), (2, 5, 2, 4)),
    ("abc,cde->abde", (2, 3, 4), (4, 2, 3)),
    ("...ij,...jk->...ik", (2, 2, 3), (2, 3, 4)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (5, 3, 4)),
    ("...ij,jk->ik...", (2, 5, 2, 3), (3, 4)),
    ("...,...->...", (2, 1), (1, 3)),
    ("i...,...j->j...i", (2, 3), (3, 4)),
    ("ii,ij->j", (2, 2), (2, 3)),
    ("ij,jk->iik", (2, 3), (3, 4)),
    ("ij,kl->i", (2, 3), (3, 4)),
    ("ij,jk->ik", (2, 0), (0, 4)),
    ("ij,jk->ik", (0, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ij->j", (2, 3)),
    ("ij->ij", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii->", (3, 3)),
    ("i->ii", (3,)),
    ("ij->iijj", (2, 3)),
    ("iij->ji", (2, 2, 3)),
    ("...ii->...i", (2, 3, 3)),
    ("...->...", (2, 3)),
    ("i...->...", (2, 3)),
    ("ij->...ij", (2, 3)),
    ("->", ()),
    (",->", (), ()),
)
ERRORS = (
    ("ij,jk->ik", (2, 3), (4, 4)),
    ("ij,jk->ik", (2, 1), (3, 3)),
    ("ii->", (2, 3)),
    ("ijk->", (2, 3)),
    ("i...->", (2, 3)),
    ("...ij,...jk->...ik", (2, 3, 4), (3, 4, 5)),
)
MALFORMED = (
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->k", (2, 3)),
    ("ij->", (2, 3), (2, 3)),
    ("ij..->ij", (2, 3)),
    ("ij,ij,ij->", (2, 3), (2, 3), (2, 3)),
)


def ramp(shape: tuple[int, ...], dtype: object = np.float32) -> np.ndarray:
    size = int(np.prod(shape))
    return ((np.arange(size) * 7 % 11) - 4).reshape(shape).astype(dtype)


CASES: tuple[Case, ...] = (
    *(
        case("Einsum", [ramp(each) for each in shapes], equation=text)
        for text, *shapes in EQUATIONS
    ),
    *(
        case("Einsum", [ramp(each) for each in shapes], equation=text, message=True)
        for text, *shapes in ERRORS
    ),
    *(
        case("Einsum", [ramp(each) for each in shapes], equation=text)
        for text, *shapes in MALFORMED
    ),
    *(
        case(
            "Einsum",
            [ramp((2, 3), t), ramp((3, 4), t)],
            equation="ij,jk->ik",
            name=f"{np.dtype(t)}",
        )
        for t in (
            np.float16,
            ml_dtypes.bfloat16,
            np.float64,
            np.complex64,
            np.complex128,
            np.int32,
            np.int64,
            np.int16,
        )
    ),
)
