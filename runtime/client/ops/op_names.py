"""Functions of tf.compat.v1 that have the same parameters as an op.

They have the op's name or another one:

    op_names.function("multiply")  # the function of ops.Mul

Functions with other parameters than their op are in `math_ops`, `array_ops` and `nn`.

TF: the generated modules that tf.compat.v1 exports directly, and thin wrappers
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.client.framework.op_call import OpResult, snake_case
from runtime.client.ops import op_function

_SAME_NAME = (
    "Acos", "Acosh", "AddN", "Asin", "Asinh", "AsString", "Atan", "Atan2", "Atanh",
    "BatchToSpaceND", "Betainc", "Bitcast", "BroadcastTo", "Ceil", "CheckNumerics", "Cholesky",
    "Conj", "Cos", "Cosh", "Cross", "DecodeBase64", "DecodeRaw", "Diag", "DiagPart", "Digamma",
    "DynamicPartition", "DynamicStitch", "EncodeBase64", "EnsureShape", "Equal", "Erf", "Erfc",
    "Exp", "Expm1", "FFT", "FFT2D", "FFT3D", "Fill", "Floor", "FloorDiv", "FloorMod", "GatherNd",
    "Greater", "GreaterEqual", "IFFT", "IFFT2D", "IFFT3D", "IdentityN", "Igamma", "Igammac",
    "Imag", "InvertPermutation", "IsFinite", "IsInf", "IsNan", "Less", "LessEqual", "Lgamma",
    "LinSpace", "Log", "Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "MatchingFiles",
    "MatrixBandPart", "MatrixDeterminant", "MatrixInverse", "MatrixSolve", "Maximum", "Minimum",
    "NotEqual", "Polygamma", "Pow", "Qr", "ReadFile", "Real", "Reciprocal", "Rint", "Round",
    "Rsqrt", "ScatterNd", "SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum",
    "Sigmoid", "Sign", "Sin", "Sinh", "SpaceToBatchND", "Sqrt", "Square", "SquaredDifference",
    "StopGradient", "StringStrip", "StringToHashBucketFast", "StringToHashBucketStrong",
    "StringToNumber", "Tan", "Tanh", "Tile", "Timestamp", "TruncateDiv", "TruncateMod",
    "UnravelIndex", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd",
    "UnsortedSegmentSum", "WriteFile", "Zeta",
)  # fmt: skip
_OTHER_NAME = {
    "complex": "Complex", "divide_no_nan": "DivNoNan", "div_no_nan": "DivNoNan",
    "linspace": "LinSpace", "mod": "FloorMod", "multiply": "Mul", "negative": "Neg",
    "parse_tensor": "ParseTensor", "realdiv": "RealDiv", "regex_replace": "StaticRegexReplace",
    "reverse": "ReverseV2", "reverse_v2": "ReverseV2", "setdiff1d": "ListDiff",
    "string_to_hash_bucket": "StringToHashBucket", "subtract": "Sub",
    "tensor_scatter_nd_add": "TensorScatterAdd", "tensor_scatter_nd_sub": "TensorScatterSub",
    "tensor_scatter_nd_update": "TensorScatterUpdate", "truncatediv": "TruncateDiv",
    "truncatemod": "TruncateMod", "xlogy": "Xlogy",
}  # fmt: skip
OP_NAMES = {**{snake_case(op): op for op in _SAME_NAME}, **_OTHER_NAME}


def function(name: str) -> Callable[..., OpResult] | None:
    """Return the function `name`, or None if no op has that name."""
    op = OP_NAMES.get(name)
    return None if op is None else op_function(op)
