"""Ops on shapes, moved and selected elements, rows, segments, and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

M = [[1.0, 2.0, 0.5], [3.0, 5.0, 0.25]]
M2 = [[0.5, -1.0, 2.0], [2.0, 0.25, 1.5]]
CUBE = (np.arange(24, dtype=np.float32) / 8 - 1).reshape(2, 3, 4)
ROWS = (np.arange(12, dtype=np.float32) / 4 + 0.5).reshape(6, 2)
SQUARE = (np.arange(18, dtype=np.float32) / 8 - 1).reshape(2, 3, 3)
IMAGE = (np.arange(64, dtype=np.float32) / 16 - 2).reshape(1, 4, 4, 4)
C = np.array([[0.5 + 0.25j, -0.75 + 0.5j], [1.5 - 2j, 1 + 1j]], np.complex64)


def _reduce(op: str, axes: Any, keep: bool = False) -> Body:
    return lambda x: getattr(ops, op)(x, axes, keep_dims=keep)


def _segments(op: str) -> Body:
    if op.startswith("Unsorted"):
        return lambda x: getattr(ops, op)(x, [2, 0, 2, -1, 0, 0], 4)
    if op.endswith("WithNumSegments"):
        return lambda x: getattr(ops, op)(x, [5, 0, 2, 2], [0, 0, 1, 3], 5)
    if op.startswith("Sparse"):
        return lambda x: getattr(ops, op)(x, [5, 0, 2, 2], [0, 0, 1, 2])
    return lambda x: getattr(ops, op)(x, [0, 0, 0, 1, 3, 3])


_SEGMENTS = [
    *(f"Segment{kind}" for kind in ("Sum", "Mean", "Max", "Min", "Prod")),
    *(f"UnsortedSegment{kind}" for kind in ("Sum", "Max", "Min", "Prod")),
    *(f"SparseSegment{kind}{end}" for kind in ("Sum", "Mean", "SqrtN")
      for end in ("", "WithNumSegments")),
]  # fmt: skip
TIES = np.array([[1.0, 2.0], [1.0, 0.0], [0.5, 2.0], [0.0, 3.0], [4.0, 0.0], [4.0, 0.0]], "f4")


CASES: dict[str, GradientCase] = {
    **{f"{op}_{name}": case(_reduce(op, axes, keep), CUBE)
       for op in ("Sum", "Mean", "Max", "Min", "Prod")
       for name, axes, keep in (("first", [0], False), ("last_two", [1, -1], True),
                                ("all", [0, 1, 2], False), ("one", 1, False))},
    "EuclideanNorm": case(_reduce("EuclideanNorm", [-1]), CUBE + 2),
    "EuclideanNorm_kept": case(_reduce("EuclideanNorm", [0, 1], True), CUBE + 2),
    **{f"CumulativeLogsumexp_{int(e)}{int(r)}":
       case(lambda x, e=e, r=r: ops.CumulativeLogsumexp(x, 1, exclusive=e, reverse=r), M)
       for e in (False, True) for r in (False, True)},
    **{f"TensorStridedSliceUpdate_{name}":
       case(lambda x, value: ops.TensorStridedSliceUpdate(
           x, [0, 1], [2, 3], [1, 1], value), M, value)
       for name, value in (("whole", [[1.0, 2.0], [3.0, 4.0]]), ("broadcast", [5.0, 6.0]))},
    "ScatterNdNonAliasingAdd":
        case(lambda x, y: ops.ScatterNdNonAliasingAdd(x, [[1], [0], [1]], y), M, CUBE[0, :3, :3]),
    "Sum_of_nothing": case(_reduce("Sum", np.zeros(0, np.int32)), M),
    "Prod_with_zeros": case(_reduce("Prod", [1]), [[0.0, 2.0, 3.0], [0.0, 0.0, 1.0]]),
    "Prod_complex": case(_reduce("Prod", [1]), C),
    "Max_of_equals": case(_reduce("Max", [1]), [[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]]),
    **{f"Cumsum_{int(e)}{int(r)}":
       case(lambda x, e=e, r=r: ops.Cumsum(x, 1, exclusive=e, reverse=r), M)
       for e in (False, True) for r in (False, True)},
    **{f"Cumprod_{int(e)}{int(r)}":
       case(lambda x, e=e, r=r: ops.Cumprod(x, -1, exclusive=e, reverse=r), M)
       for e in (False, True) for r in (False, True)},
    # shapes
    "Reshape": case(lambda x: ops.Reshape(x, [4, -1]), CUBE),
    "ExpandDims": case(lambda x: ops.ExpandDims(x, 1), M),
    "Squeeze": case(lambda x: ops.Squeeze(x, [0]), [M]),
    "Transpose": case(lambda x: ops.Transpose(x, [2, 0, 1]), CUBE),
    "ConjugateTranspose": case(lambda x: ops.ConjugateTranspose(x, [1, 0]), C),
    "Pack": case(lambda a, b: ops.Pack([a, b], axis=1), M, M2),
    "Unpack": case(lambda x: list(ops.Unpack(x, num=3, axis=1)), M),
    "Unpack_in_part": case(lambda x: ops.Unpack(x, num=3, axis=1)[1], M),
    "Concat": case(lambda a, b: ops.Concat(1, [a, b]), M, M2),
    "ConcatV2": case(lambda a, b: ops.ConcatV2([a, b, a], -1), M, M2),
    "Split": case(lambda x: list(ops.Split(2, x, 2)), CUBE),
    "Split_in_part": case(lambda x: ops.Split(2, x, 2)[1], CUBE),
    "SplitV": case(lambda x: list(ops.SplitV(x, [1, 2], 1, num_split=2)), CUBE),
    "Slice": case(lambda x: ops.Slice(x, [0, 1, 1], [2, 2, -1]), CUBE),
    "StridedSlice": case(lambda x: x[1, ::-1, None, 1:3], CUBE),
    "StridedSliceGrad": case(lambda x: ops.StridedSliceGrad([4], [0], [4], [2], x), [1.0, 2.0]),
    "StridedSlice_twice": case(lambda x: (x * x)[0, 1:], CUBE, order=2),
    "Pad": case(lambda x: ops.Pad(x, [[1, 0], [0, 2]]), M),
    "PadV2": case(lambda x, v: ops.PadV2(x, [[1, 0], [0, 2]], v), M, 3.0),
    "MirrorPad": case(lambda x: ops.MirrorPad(x, [[1, 0], [1, 2]], "REFLECT"), M),
    "MirrorPadGrad": case(lambda x: ops.MirrorPadGrad(x, [[0, 0], [1, 1]], "SYMMETRIC"), CUBE[0]),
    "Reverse": case(lambda x: ops.Reverse(x, [True, False]), M),
    "ReverseV2": case(lambda x: ops.ReverseV2(x, [-1]), M),
    "ReverseSequence": case(
        lambda x: ops.ReverseSequence(x, np.array([2, 3]), seq_dim=1, batch_dim=0), CUBE
    ),
    "Roll": case(lambda x: ops.Roll(x, [1, -2], [0, 2]), CUBE),
    "Tile": case(lambda x: ops.Tile(x, [2, 1, 3]), CUBE),
    "BroadcastTo": case(lambda x: ops.BroadcastTo(x, [3, 2, 3]), M),
    "Fill": case(lambda x: ops.Fill([2, 3], x), 1.5),
    "Diag": case(ops.Diag, [1.0, 2.0]),
    "DiagPart": case(ops.DiagPart, CUBE[0, :3, :3]),
    "MatrixDiag": case(ops.MatrixDiag, M),
    "MatrixDiagPart": case(ops.MatrixDiagPart, CUBE),
    "MatrixSetDiag": case(ops.MatrixSetDiag, SQUARE, M),
    "MatrixBandPart": case(lambda x: ops.MatrixBandPart(x, 1, 0), SQUARE),
    "MatrixDiagV3": case(lambda x: ops.MatrixDiagV3(x, [0, 1], 3, 3, 0.0), CUBE[:, :2, :3]),
    "MatrixDiagPartV3": case(lambda x: ops.MatrixDiagPartV3(x, [-1, 1], 0.0), SQUARE),
    "MatrixDiagPartV3_left": case(
        lambda x: ops.MatrixDiagPartV3(x, [-1, 1], 0.0, align="LEFT_LEFT"), SQUARE
    ),
    "MatrixSetDiagV3": case(
        lambda x, d: ops.MatrixSetDiagV3(x, d, [0, 1]), SQUARE, CUBE[:, :2, :3]
    ),
    # rows
    "Gather": case(lambda x: ops.Gather(x, [[1, 0], [1, 1]]), M),
    "GatherV2": case(lambda x: ops.GatherV2(x, [[1, 0], [1, 1]], 0), M),
    "GatherV2_last": case(lambda x: ops.GatherV2(x, [[1, 0], [3, 1]], -1), CUBE),
    "GatherV2_middle": case(lambda x: ops.GatherV2(x, np.array([2, 0, 2]), 1), CUBE),
    "GatherV2_batch":
        case(lambda x: ops.GatherV2(x, [[1, 0], [2, 2]], 1, batch_dims=1), CUBE),
    "GatherV2_batch_last":
        case(lambda x: ops.GatherV2(x, [[1, 0, 3], [2, 2, 1]], 2, batch_dims=1), CUBE),
    "GatherV2_twice_used": case(
        lambda x: ops.GatherV2(x, [1, 1], 0) * ops.GatherV2(x, [0, 1], 0) + x, M
    ),
    "GatherV2_twice": case(lambda x: ops.GatherV2(x * x, [1, 0, 1], 0), M, order=2),
    "GatherNd": case(lambda x: ops.GatherNd(x, [[1, 0], [0, 2], [1, 0]]), M),
    "ScatterNd": case(lambda x: ops.ScatterNd([[3], [1]], x, [4, 3]), M),
    "TensorScatterUpdate": case(lambda x, u: ops.TensorScatterUpdate(x, [[1], [4]], u), ROWS,
                                ROWS[:2] * 2),
    **{op: case(lambda x, u, op=op: getattr(ops, op)(x, [[1], [4]], u), ROWS, ROWS[:2] * 3)
       for op in ("TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin")},
    "TensorScatterMax_of_equals": case(
        lambda x, u: ops.TensorScatterMax(x, [[1], [1]], u), [1.0, 2.0], [2.0, 2.0]
    ),
    "TopKV2": case(lambda x: ops.TopKV2(x, 2)[0], CUBE),
    "DynamicPartition": case(lambda x: list(ops.DynamicPartition(x, [1, 0, 1, 2, 0, 1], 3)), ROWS),
    "DynamicStitch": case(
        lambda a, b: ops.DynamicStitch([[3, 1], [0, 2]], [a, b]), M, M2
    ),
    "ParallelDynamicStitch": case(
        lambda a, b: ops.ParallelDynamicStitch([[3, 1], [0, 2]], [a, b]), M, M2
    ),
    **{op: case(_segments(op), ROWS) for op in _SEGMENTS},
    **{f"{op}_of_ties": case(_segments(op), TIES) for op in _SEGMENTS if "Sparse" not in op},
    "UnsortedSegmentSum_of_matrix_ids": case(
        lambda x: ops.UnsortedSegmentSum(x, [[0, 1, -1], [1, 1, 0]], 3), CUBE
    ),
    "UnsortedSegmentMax_of_matrix_ids": case(
        lambda x: ops.UnsortedSegmentMax(x, [[0, 1, -1], [1, 1, 0]], 3), CUBE
    ),
    # blocks
    "SpaceToDepth": case(lambda x: ops.SpaceToDepth(x, 2), IMAGE),
    "DepthToSpace": case(lambda x: ops.DepthToSpace(x, 2), IMAGE),
    "SpaceToBatch": case(lambda x: ops.SpaceToBatch(x, [[0, 0], [1, 1]], 2), IMAGE),
    "SpaceToBatchND": case(lambda x: ops.SpaceToBatchND(x, [2, 2], [[0, 0], [1, 1]]), IMAGE),
    "BatchToSpace": case(
        lambda x: ops.BatchToSpace(x, [[0, 0], [1, 0]], 2), IMAGE.reshape(4, 2, 2, 4)
    ),
    "BatchToSpaceND": case(
        lambda x: ops.BatchToSpaceND(x, [2, 2], [[0, 0], [1, 0]]), IMAGE.reshape(4, 2, 2, 4)
    ),
}  # fmt: skip
