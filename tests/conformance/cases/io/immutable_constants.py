"""ImmutableConst: the first bytes of a file as a tensor; paths are relative to the repository."""

from __future__ import annotations

from typing import Any

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

FILES = "tests/conformance/files/"


def _constant(kind: DataType, shape: Any, file: str = "vocabulary.txt", name: str = "") -> Case:
    return case(
        "ImmutableConst", name=name or f"constant_{kind.tf_name}_{len(shape)}", dtype=kind,
        shape=shape, memory_region_name=FILES + file, message=True,
    )  # fmt: skip


CASES = (
    *(
        _constant(kind, shape)
        for kind in (
            DataType.FLOAT, DataType.DOUBLE, DataType.INT8, DataType.UINT8, DataType.INT16,
            DataType.UINT16, DataType.INT32, DataType.UINT32, DataType.INT64, DataType.UINT64,
            DataType.HALF, DataType.BFLOAT16, DataType.COMPLEX64, DataType.COMPLEX128,
            DataType.QINT8, DataType.QUINT8, DataType.QINT16, DataType.QUINT16, DataType.QINT32,
        )
        for shape in ((), (2,), (0, 3))
    ),
    _constant(DataType.BOOL, (0,)),
    _constant(DataType.STRING, (1,)),
    _constant(DataType.RESOURCE, ()),
    _constant(DataType.VARIANT, ()),
    _constant(DataType.FLOAT, (1000,), name="too_short"),
    _constant(DataType.FLOAT, (1,), "no_such_file", "missing"),
    _constant(DataType.FLOAT, (1,), "", "folder"),
)  # fmt: skip
