"""The recorded answers of TF Text's ops, as `tools/record/text_cases.py` writes them."""

from __future__ import annotations

import dataclasses
import gzip
import json
import pathlib
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_packages import kernels_of_package, package_op_defs

# what tools/record/text_cases.py recorded
RECORDED = pathlib.Path(__file__).parent / "text_cases.json.gz"

Arrays = list[Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """A call of an op: its inputs and attributes, and its outputs or the code of its error."""

    op: str
    inputs: Arrays
    attrs: dict[str, Any]
    outputs: Arrays
    error: int | None


def read_cases(path: pathlib.Path) -> list[Case]:
    recorded = json.loads(gzip.decompress(path.read_bytes()))
    tensors = recorded["tensors"]
    models = recorded["models"]

    def arrays(numbers: list[int]) -> Arrays:
        found = [tensors[number] for number in numbers]
        return [as_array(models[each] if isinstance(each, str) else each) for each in found]

    return [
        Case(
            case["op"],
            arrays(case["inputs"]),
            case["attrs"],
            arrays(case.get("outputs", [])),
            case.get("error"),
        )
        for case in recorded["cases"]
    ]


def as_array(recorded: dict[str, Any]) -> Any:
    shape, data = recorded["shape"], recorded["data"]
    if recorded["dtype"] != "string":
        return np.array(data, recorded["dtype"]).reshape(shape)
    array = np.empty(len(data), object)
    array[:] = [each.encode("latin-1") for each in data]
    return array.reshape(shape) if shape else array[0]


def call(op: str, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    """Return what the kernel of an op gives, with the op's default attributes."""
    kernels, reason = kernels_of_package(op)
    assert kernels, reason
    (kernel,) = kernels
    defaults = {each.name: each.default_value for each in package_op_defs()[op].attr}
    given = {}
    for name in kernel.attr_names:
        if isinstance(attrs.get(name), str) and name == "Tsplits":
            given[name] = from_numpy(np.dtype(attrs[name]))
        elif name in attrs:
            given[name] = attrs[name]
        elif name == "Tsplits" and not inputs[1].dtype.hasobject:
            given[name] = from_numpy(inputs[1].dtype)
        else:
            default = defaults[name]
            kind = default.WhichOneof("value")
            given[name] = DataType(default.type) if kind == "type" else getattr(default, kind)
    found = kernel.function(*inputs, **given)
    return list(found) if isinstance(found, tuple | list) else [found]
