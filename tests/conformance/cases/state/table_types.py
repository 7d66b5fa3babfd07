"""Each kind of table with the pairs of key and value types that TensorFlow supports."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32, F64, I32, I64 = DataType.FLOAT, DataType.DOUBLE, DataType.INT32, DataType.INT64
STRING, BOOL = DataType.STRING, DataType.BOOL
COMMON = (
    *((I32, value) for value in (F32, F64, I32)),
    *((STRING, value) for value in (F32, F64, I32, I64, BOOL)),
    *((I64, value) for value in (F32, F64, I32, I64)),
)
WITH_STRINGS = (*COMMON, (I64, STRING))
PAIRS = {
    "HashTable": (*WITH_STRINGS, (I32, STRING), (STRING, STRING)),
    "HashTableV2": (*WITH_STRINGS, (I32, STRING), (STRING, STRING)),
    "AnonymousHashTable": (*WITH_STRINGS, (I32, STRING), (STRING, STRING)),
    "MutableHashTable": WITH_STRINGS,
    "MutableHashTableV2": WITH_STRINGS,
    "AnonymousMutableHashTable": WITH_STRINGS,
    "MutableHashTableOfTensors": WITH_STRINGS,
    "MutableHashTableOfTensorsV2": WITH_STRINGS,
    "AnonymousMutableHashTableOfTensors": WITH_STRINGS,
    "MutableDenseHashTable": (*COMMON, (I64, BOOL)),
    "MutableDenseHashTableV2": (*COMMON, (I64, BOOL)),
    "AnonymousMutableDenseHashTable": (*COMMON, (I64, BOOL)),
}
NUMBERS = {STRING: [b"5", b"6", b"7", b"8", b"9"], BOOL: [True, False, True, False, True]}


def values(data_type: DataType, *indices: int) -> np.ndarray:
    """Return the values at `indices` of a list of five values of a type."""
    known = np.array(NUMBERS.get(data_type, [5, 6, 7, 8, 9]), data_type.numpy)
    return known[list(indices)]


def table_of(op: str, key: DataType, value: DataType) -> Case:
    """Insert two entries, and look them up with a key that is absent."""
    g = Graph()
    inputs: list[Any] = []
    attrs: dict[str, Any] = {"key_dtype": key, "value_dtype": value}
    if "Dense" in op:
        inputs = [values(key, 3)[0], values(key, 4)[0]]  # the empty and the deleted key
        inputs = [np.asarray(each, key.numpy) for each in inputs]
        if op == "MutableDenseHashTable":
            inputs = inputs[:1]
    if not op.startswith("Anonymous"):
        attrs["shared_name"] = "table"
    of_vectors = op.rstrip("V2").endswith("OfTensors")
    if of_vectors:
        attrs["value_shape"] = (2,)
    table = g.add(op, *inputs, name="table", **attrs)[0]
    version = "" if op.endswith(("Table", "Tensors")) and not op.startswith("Anonymous") else "V2"
    verb = "Insert" if "Mutable" in op else "Import"
    if version == "" and verb == "Import":
        fill = "InitializeTable"
    else:
        fill = f"LookupTable{verb}{version}"
    entries = values(value, 0, 1, 2, 3).reshape(2, 2) if of_vectors else values(value, 0, 1)
    default = values(value, 4, 4) if of_vectors else np.asarray(values(value, 4)[0], value.numpy)
    g.add(fill, table, values(key, 0, 1), entries, name="fill")
    found = g.add(
        f"LookupTableFind{version}", table, values(key, 1, 2, 0), default, name="find",
        control=["fill"],
    )[0]  # fmt: skip
    name = f"{op}_{key.tf_name}_{value.tf_name}"
    return Case(name, g.graph_def, (Step({}, (found[0],)),))


CASES = tuple(table_of(op, *pair) for op, pairs in PAIRS.items() for pair in pairs)
