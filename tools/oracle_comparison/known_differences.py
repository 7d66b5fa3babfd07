"""Differences that docs/kernel_differences.md documents: found again, they are not counted."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from runtime.framework.tensor_codec import tensor_from_proto
from tests.conformance.case import Answer, Case

Answers = list[Answer | str]
Rule = Callable[[Case, Answers, list[Answer]], bool]


def _answered(ours: Answers) -> bool:
    return all(not isinstance(answer, str) and not answer.code for answer in ours)


def _accepted_here(*words: str) -> Rule:
    """TensorFlow refuses with one of these words what this runtime answers."""

    def rule(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
        return _answered(ours) and any(w in answer.message for answer in theirs for w in words)

    return rule


def _not_of_32_bits(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A scalar of which TensorFlow reads 32 bits: int16, or int64 beyond them."""
    return _fed(
        case,
        lambda value: (
            not value.ndim
            and (
                value.dtype == np.int16
                or (value.dtype == np.int64 and not -(2**31) <= int(value) < 2**31)
            )
        ),
    )


def _far_from_zero(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return _same_shapes(case, ours, theirs) and _fed(
        case, lambda value: bool(np.any(np.abs(value.astype(np.float64)) > 100))
    )


def _up_to_the_last_step(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A recurrent cell's outputs agree in the steps that it is to take."""
    steps = [int(v) for s in case.steps for v in s.feeds.values() if v.dtype == np.int64]
    return _same_shapes(case, ours, theirs) and all(
        np.allclose(
            got[: steps[0]].astype(np.float32),
            want[: steps[0]].astype(np.float32),
            1e-2,
            1e-2,
            True,
        )
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def _out_of_order(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Rows of sparse indices that do not ascend, as TensorFlow expects without looking."""
    return _same_shapes(case, ours, theirs) and _fed(
        case,
        lambda value: (
            value.dtype == np.int64
            and value.ndim == 2
            and value.tolist() != sorted(map(list, set(map(tuple, value.tolist()))))
        ),
    )


def _refused_here(*words: str) -> Rule:
    """This runtime refuses with one of these words what TensorFlow answers, or refuses later."""

    def rule(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
        return any(
            w in answer.message for answer in ours if not isinstance(answer, str) for w in words
        )

    return rule


def _refused_there(*words: str) -> Rule:
    """TensorFlow refuses with one of these words."""

    def rule(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
        return any(word in answer.message for answer in theirs for word in words)

    return rule


def _any(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return True


def _close(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Apart by no more than rounding in single precision allows for sums of large parts."""
    return _same_shapes(case, ours, theirs) and all(
        np.allclose(got, want, 2e-2, 1e-3 * float(np.abs(want).max(initial=0)), True)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def _one_step(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return _same_shapes(case, ours, theirs) and all(
        np.allclose(got.astype(np.float64), want.astype(np.float64), 1e-6, 1)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def _negative(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return _same_shapes(case, ours, theirs) and _fed(case, lambda value: bool((value < 0).any()))


def _other_threshold(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """TensorFlow reads a threshold of four bytes as one of eight, or the other way."""
    real = {"complex64": "float32", "complex128": "float64"}
    values = [value.dtype.name for step in case.steps for value in step.feeds.values()]
    return len(values) == 7 and values[6] != real.get(values[1], values[1])


def _odd_sparse_tensor(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Indices out of bounds, repeated or not in row-major order; or a shape below zero."""
    given = [*_constants(case), *(value for step in case.steps for value in step.feeds.values())]
    numbers = [value for value in given if value.dtype == np.int64]
    shapes = [value for value in numbers if value.ndim == 1]
    for indices in numbers:
        if indices.ndim != 2 or not indices.size:
            continue
        rows = [tuple(row) for row in indices.tolist()]
        if (indices < 0).any() or any(one >= two for one, two in itertools.pairwise(rows)):
            return True
        fitting = [shape for shape in shapes if len(shape) == indices.shape[1]]
        if any((indices >= shape).any() for shape in fitting):
            return True
    return any((shape < 0).any() for shape in shapes)


def _constants(case: Case) -> list[np.ndarray]:
    return [
        tensor_from_proto(node.attr["value"].tensor)
        for node in case.graph.node
        if node.op == "Const"
    ]


def _refused_graph(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A constant shape that is negative: TensorFlow refuses the graph, in every step."""
    words = "Invalid value in tensor used for shape"
    return all(words in answer.message for answer in theirs)


def _too_many_elements(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return any("overflow" in answer.message for answer in theirs)


def _same_up_to_signs(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Eigenvalues agree; eigenvectors may turn, and any basis will do for equal eigenvalues."""
    if not _same_shapes(case, ours, theirs):
        return False
    pairs = zip(ours[0].values, theirs[0].values, strict=True)  # type: ignore[union-attr]
    return all(
        np.allclose(_eigenvalues(got, want.ndim), _eigenvalues(want, want.ndim), 1e-3, 1e-4, True)
        for got, want in list(pairs)[:1]
    )


def _eigenvalues(value: np.ndarray, ranks: int) -> np.ndarray:
    """The first row of what version 1 gives; all of what version 2 gives."""
    rows = ranks > 1 and value.shape[-2] == value.shape[-1] + 1
    return value[..., 0, :] if rows else value


def _same_shapes(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Both answer, with the same types and shapes: the values are not defined."""
    return _answered(ours) and all(
        [(v.dtype, v.shape) for v in got.values] == [(v.dtype, v.shape) for v in want.values]  # type: ignore[union-attr]
        for got, want in zip(ours, theirs, strict=True)
    )


def _fed(case: Case, test: Callable[[np.ndarray], bool]) -> bool:
    """Whether the test holds for something fed, or for a constant."""
    fed = (value for step in case.steps for value in step.feeds.values())
    return any(test(value) for value in (*fed, *_constants(case)))


def _numbers_that_do_not_fit(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """NaN, infinities and floats beyond the integer type: what a cast gives is not defined."""
    integers = any("int" in v.dtype.name or v.dtype == bool for a in theirs for v in a.values)

    def beyond(value: np.ndarray) -> bool:
        if value.dtype.kind not in "fcV" or "int" in value.dtype.name:
            return False
        wide = np.abs(value.astype(np.complex128))
        return bool(np.any(~(wide < 128)) or np.any(value.astype(np.complex128).real < 0))

    return integers and _same_shapes(case, ours, theirs) and _fed(case, beyond)


def _complex_and_not_finite(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Complex arithmetic with NaN or infinities: parts differ by the order of multiplications."""
    return (
        _same_shapes(case, ours, theirs)
        and any(v.dtype.kind == "c" for answer in theirs for v in answer.values)
        and all(
            bool(np.all(np.isfinite(got) | ~np.isfinite(want)))
            and np.allclose(got[_both(got, want)], want[_both(got, want)], 1e-3)
            for ours_, theirs_ in zip(ours, theirs, strict=True)
            for got, want in zip(ours_.values, theirs_.values, strict=True)  # type: ignore[union-attr]
            if want.dtype.kind == "c"
        )
    )


def _both(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    return np.isfinite(got) & np.isfinite(want)


def _refused_format(_: Case, _ours: Answers, theirs: list[Answer]) -> bool:
    """TensorFlow looks at the data format first; this runtime goes on to what is wrong besides."""
    words = (
        "only supports NHWC",
        "only supports NDHWC",
        "only supportsNDHWC",
        "only supports the NHWC",
        "NHWC tensor",
    )
    return any(word in answer.message for answer in theirs for word in words)


def _above_the_limit(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """One of the two has no room for a tensor that the other one never comes to."""
    both = [answer for answer in (*ours, *theirs) if not isinstance(answer, str)]
    return any(answer.code == 8 for answer in both)


def _not_finite(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    def odd(value: np.ndarray) -> bool:
        if value.dtype.kind not in "fcV" or "int" in value.dtype.name:
            return False
        return not np.isfinite(value.astype(np.complex128)).all()

    return _fed(case, odd) and _answered(ours) and not any(answer.code for answer in theirs)


def _nan_there(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The only difference: numbers here where TensorFlow has NaN."""
    return _same_shapes(case, ours, theirs) and all(
        np.allclose(got[~np.isnan(want)], want[~np.isnan(want)], 0.05, 0.05, True)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(
            (each.astype(np.float64) for each in mine.values),  # type: ignore[union-attr]
            (each.astype(np.float64) for each in other.values),
            strict=True,
        )
    )


def _half_intermediates(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Half types: TensorFlow rounds between, this runtime once."""
    if not _same_shapes(case, ours, theirs):
        return False
    pairs = [
        (got, want)
        for one, other in zip(ours, theirs, strict=True)
        for got, want in zip(one.values, other.values, strict=True)  # type: ignore[union-attr]
    ]
    halves = [
        (g.astype(np.float32), w.astype(np.float32))
        for g, w in pairs
        if w.dtype.itemsize == 2 and w.dtype.kind in "fV"
    ]
    return bool(halves) and all(
        np.allclose(
            g[_both(g, w)],
            w[_both(g, w)],
            0.05,
            0.05 * float(np.abs(w[np.isfinite(w)]).max(initial=0)),
        )
        for g, w in halves
    )


def _singular(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A factorisation that failed: NaN here, what was in memory or NaN in TensorFlow."""
    return _same_shapes(case, ours, theirs) and any(
        not np.isfinite(value).all()
        for answer in ours
        for value in answer.values  # type: ignore[union-attr] # both answered
    )


def _nothing_changed(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A bad index: both refuse the step, TensorFlow after it changed earlier rows."""
    codes = [0 if isinstance(answer, str) else answer.code for answer in ours]
    return codes == [answer.code for answer in theirs] and 3 in codes


def _later_values_of_the_first(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The first output agrees; the others hold what TensorFlow leaves for its own gradients."""
    first = [(ours[0], theirs[0])]
    return all(
        not isinstance(got, str)
        and bool(got.values)
        and bool(want.values)
        and np.allclose(
            got.values[0].astype(np.float64), want.values[0].astype(np.float64), 1e-2, 1e-2, True
        )
        for got, want in first
    )


def _ill_conditioned(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """One of the two cannot invert the matrix, or both lose most digits."""
    return any(isinstance(answer, str) or answer.code for answer in ours) or any(
        not isinstance(answer, str)
        and any(
            not np.isfinite(each).all() or np.abs(each).max(initial=0) > 1e3
            for each in answer.values
        )
        for answer in (*ours, *theirs)
    )


_SCATTERS = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update", "NdAdd", "NdSub", "NdMin",
             "NdMax", "NdUpdate")  # fmt: skip
_RULES_OF_TRAINING = ("Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "CenteredRMSProp", "Ftrl",
                      "FtrlV2", "KerasMomentum", "Momentum", "ProximalAdagrad",
                      "ProximalGradientDescent", "RMSProp")  # fmt: skip
SPARSE_UPDATES = tuple(
    f"{resource}{op}"
    for resource in ("", "Resource")
    for op in (
        *(f"Scatter{each}" for each in _SCATTERS),
        *(f"SparseApply{each}" for each in _RULES_OF_TRAINING),
    )
)
SPARSE_TENSORS = (
    "SetSize", "SparseAdd", "SparseAddGrad", "SparseConcat", "SparseDenseCwiseAdd",
    "SparseDenseCwiseDiv", "SparseDenseCwiseMul", "SparseMatrixSparseMatMul", "SparseReduceMax",
    "SparseReduceMaxSparse", "SparseReduceSum", "SparseReduceSumSparse", "SparseReorder",
    "SparseReshape", "SparseSlice", "SparseSoftmax", "SparseSparseMaximum", "SparseSparseMinimum",
    "SparseSplit", "SparseTensorToCSRSparseMatrix", "SparseToSparseSetOperation",
)  # fmt: skip


# (ops, or () for all; rule; what the page says)
RULES: tuple[tuple[tuple[str, ...], Rule, str], ...] = (
    ((), _refused_format, "channels first"),
    ((), _above_the_limit, "tensors above the configured limit"),
    (("Tile",), _accepted_here("The input data type is not supported"), "more element types"),
    (("Where",), _accepted_here("No WhereOp available"), "more element types"),
    (("ToBool",), _accepted_here("cannot be converted to a boolean"), "more element types"),
    (("Cast",), _accepted_here("is not supported"), "int4 and float8 casts"),
    (("Cast",), _numbers_that_do_not_fit, "casts that do not fit"),
    (("Conv3D",), _accepted_here("only supports dilated rates of 1"), "dilations"),
    (("AvgPoolGrad", "AvgPool3DGrad"), _refused_here("does not fit an input of shape"),
     "gradients of pooling that do not fit"),
    (("FractionalAvgPoolGrad", "FractionalMaxPoolGrad"),
     _refused_here("_pooling_sequence must", "out_backprop must have"),
     "gradients of pooling that do not fit"),
    (("MaxPoolGradWithArgmax",), _refused_here("which is outside of its image"),
     "an index out of range in MaxPoolGradWithArgmax"),
    (("BlockLSTMGrad", "BlockLSTMGradV2"),
     _refused_here("Gates and gradients must have shape", "w.dim_size(0) != input_size"),
     "gates and gradients of BlockLSTMGrad that do not fit"),
    (("EditDistance",), _out_of_order, "EditDistance of indices out of order"),
    (("ArgMax", "ArgMin", "MatrixBandPart", "BatchMatrixBandPart"), _not_of_32_bits,
     "scalars cut to 32 bits"),
    (("FresnelCos", "FresnelSin"), _far_from_zero, "Fresnel integrals far from zero"),
    (("Dilation2D", "Dilation2DBackpropInput", "Dilation2DBackpropFilter"),
     _refused_here("Rate must be positive"), "rates below 1"),
    (("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
     _refused_here("in the batch and depth", "no empty window"), "filters without elements"),
    (("BlockLSTM", "BlockLSTMV2"), _up_to_the_last_step, "outputs that TensorFlow leaves unset"),
    (("CTCLoss",), _close, "logarithms in single precision"),
    (("Eig",), _same_shapes, "the order of eigenvalues"),
    (("LookupTableExport", "LookupTableExportV2"), _same_shapes, "the order of a table's entries"),
    (("IteratorGetNextAsOptional", "IteratorGetNextSync"), _same_shapes,
     "one iterator asked twice in a step"),
    (("MatrixInverse",), _refused_here("not invertible"), "factorisations that failed"),
    (("AnonymousSeedGenerator",), _same_shapes, "TensorFlow's sequence"),
    (("Empty", "EmptyLike"), _same_shapes, "outputs that TensorFlow leaves unset"),
    (("Svd", "BatchSvd"), _same_shapes, "outputs that TensorFlow leaves unset"),
    (("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _later_values_of_the_first,
     "outputs that TensorFlow leaves unset"),
    (("EncodePng", "EncodeJpeg", "EncodeJpegVariableQuality"), _same_shapes, "other bytes"),
    (("Round",), _same_shapes, "Round of int32 and int64"),
    (("TopK", "TopKV2"), _same_shapes, "TopKV2 with sorted=false"),
    (("LowerBound", "UpperBound"), _same_shapes, "bounds in sequences that are not sorted"),
    (("Cholesky", "BatchCholesky", "Lu", "LogMatrixDeterminant", "MatrixInverse", "Qr", "Eig",
      "SelfAdjointEigV2", "BatchSelfAdjointEigV2"), _singular, "factorisations that failed"),
    (("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
      "NonMaxSuppressionV5", "HSVToRGB", "RGBToHSV", "AdjustHue", "AdjustSaturation",
      "ImageProjectiveTransformV2", "ImageProjectiveTransformV3", "CTCGreedyDecoder",
      "ResizeArea", "ClipByValue", "LRN", "LRNGrad", "Erf", "Igamma", "MaxPool", "MaxPoolV2",
      "RequantizationRange", "Sigmoid", "ScaleAndTranslate", "Polygamma", "Zeta", "BesselY1",
      "ResourceApplyAdaMax"), _not_finite, "NaN and infinities"),
    (SPARSE_UPDATES, _nothing_changed, "a bad index in a sparse update"),
    (("SparseApplyFtrl", "SparseApplyFtrlV2", "ResourceSparseApplyFtrl",
      "ResourceSparseApplyFtrlV2"), _nan_there, "NaN and infinities"),
    (SPARSE_UPDATES, _refused_here("Must have updates.shape"), "updates that do not fit"),
    (SPARSE_TENSORS, _odd_sparse_tensor, "sparse tensors that are not in order"),
    (("SelfAdjointEig", "SelfAdjointEigV2", "BatchSelfAdjointEig", "BatchSelfAdjointEigV2"),
     _same_up_to_signs, "eigenvectors"),
    (("BatchCholeskyGrad", "CholeskyGrad", "MatrixLogarithm", "MatrixSquareRoot",
      "BandedTriangularSolve"), _ill_conditioned, "factorisations that failed"),
    (("ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample"),
     _refused_here("Could not parse"), "a malformed tf.Example"),
    ((), _refused_here("counter must be a vector with length"), "a counter that is too short"),
    ((), _refused_here("range of a quantized tensor must be finite"), "ranges that are not finite"),
    (("QuantizedMul",), _same_shapes, "a vector that does not fit in QuantizedMul"),
    (("BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad"),
     _refused_here("must have shape"),
     "statistics that do not fit"),
    (("RaggedTensorToTensor", "TemporaryVariable"), _same_shapes,
     "outputs that TensorFlow leaves unset"),
    (("AssertNextDataset", "AssertPrevDataset", "ExperimentalAssertNextDataset"),
     _refused_there("transformation"), "assertions about datasets"),
    (("AutoShardDataset", "ExperimentalAutoShardDataset"), _any, "datasets that are sharded"),
    (("DeserializeIterator",), _any, "a state restored into other datasets"),
    (("FusedResizeAndPadConv2D",), _close, "weights in single precision"),
    (("AdjustContrast", "MatrixSquareRoot", "MatrixLogarithm"), _close, "ill-conditioned"),
    (("QuantizedBiasAdd",), _one_step, "one step of a quantised sum"),
    (("ImageSummary",), _same_shapes, "other bytes"),
    (("TensorSummaryV2",), _same_shapes, "metadata that cannot be parsed"),
    (("KmeansPlusPlusInitialization",), _same_shapes, "TensorFlow's sequence"),
    (("SelfAdjointEig", "SelfAdjointEigV2", "BatchSelfAdjointEig", "BatchSelfAdjointEigV2"),
     _refused_here("eigen decomposition"),
     "factorisations that failed"),
    (("SparseMatrixSparseCholesky",), _ill_conditioned, "factorisations that failed"),
    (("Zeta", "Polygamma"), _negative, "functions of negative numbers"),
    (("SparseAdd",), _other_threshold, "a threshold of another type"),
    (("AccumulatorApplyGradient", "SparseAccumulatorApplyGradient"),
     _refused_here("local_step must be scalar", "expected values dim"),
     "gradients that do not fit"),
    (("MapStage", "OrderedMapStage"), _refused_here("was out of bounds"), "indices out of bounds"),
    (("RaggedTensorToTensor",), _refused_here("Invalid first partition"),
     "outputs that TensorFlow leaves unset"),
    ((), _refused_graph, "a negative constant shape"),
    ((), _too_many_elements, "shapes beyond 2⁶³ elements"),
    (("QuantizedMul", "QuantizedAdd", "QuantizedAvgPool", "QuantizedMaxPool", "QuantizedRelu",
      "QuantizedRelu6", "Requantize", "QuantizeAndDequantizeV4", "QuantizeAndDequantizeV4Grad"),
     _accepted_here("must be rank 0", "must be a scalar"), "ranges as vectors of one"),
    ((), _half_intermediates, "half types"),
    ((), _complex_and_not_finite, "complex numbers that are not finite"),
)  # fmt: skip


def reason_for(op: str, case: Case, ours: Answers, theirs: list[Answer]) -> str:
    """What docs/kernel_differences.md says of a difference; empty when it says nothing."""
    inside = {op, *(node.op for node in case.graph.node)}
    for ops, rule, reason in RULES:
        if (not ops or inside & set(ops)) and rule(case, ours, theirs):
            return reason
    return ""
