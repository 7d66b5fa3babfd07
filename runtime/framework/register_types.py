"""Lists of element types that kernel tables use as constraints.

TF: tensorflow/core/framework/register_types.h (the TF_CALL_…_TYPES macros)
"""

from __future__ import annotations

from runtime.framework.dtypes import DataType

HALF_TYPES = (DataType.HALF, DataType.BFLOAT16)
SINGLE_AND_DOUBLE = (DataType.FLOAT, DataType.DOUBLE)
FLOAT_TYPES = HALF_TYPES + SINGLE_AND_DOUBLE
COMPLEX_TYPES = (DataType.COMPLEX64, DataType.COMPLEX128)
SIGNED_INTEGER_TYPES = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64)
UNSIGNED_INTEGER_TYPES = (DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64)
INTEGRAL_TYPES = SIGNED_INTEGER_TYPES + UNSIGNED_INTEGER_TYPES
REAL_NUMBER_TYPES = FLOAT_TYPES + INTEGRAL_TYPES
NUMBER_TYPES = REAL_NUMBER_TYPES + COMPLEX_TYPES
POD_TYPES = (*NUMBER_TYPES, DataType.BOOL)
