"""A SavedModel that returns its input, with a signature for each element type."""

from __future__ import annotations

import pathlib

import protos as pb
from runtime.framework.dtypes import DataType

# By the protocol's name of the type. `x` is `[-1, 2]` in `pair`, and unknown in all others.
TYPES: dict[str, DataType] = {
    "BOOL": DataType.BOOL,
    "UINT8": DataType.UINT8,
    "UINT16": DataType.UINT16,
    "UINT32": DataType.UINT32,
    "UINT64": DataType.UINT64,
    "INT8": DataType.INT8,
    "INT16": DataType.INT16,
    "INT32": DataType.INT32,
    "INT64": DataType.INT64,
    "FP16": DataType.HALF,
    "BF16": DataType.BFLOAT16,
    "FP32": DataType.FLOAT,
    "FP64": DataType.DOUBLE,
    "BYTES": DataType.STRING,
    "complex": DataType.COMPLEX64,
    "pair": DataType.FLOAT,
}


def write_echo_model(folder: pathlib.Path) -> pathlib.Path:
    """Write version 1 below `folder`, and return `folder`."""
    saved_model = pb.SavedModel(saved_model_schema_version=1)
    meta_graph = saved_model.meta_graphs.add()
    meta_graph.meta_info_def.tags.append("serve")
    for name, data_type in TYPES.items():
        graph = meta_graph.graph_def
        placeholder = graph.node.add(name=f"in_{name}", op="Placeholder")
        placeholder.attr["dtype"].type = data_type
        shape = placeholder.attr["shape"].shape
        identity = graph.node.add(name=f"out_{name}", op="Identity", input=[f"in_{name}"])
        identity.attr["T"].type = data_type
        signature = meta_graph.signature_def[name]
        signature.method_name = "tensorflow/serving/predict"
        given, taken = signature.inputs["x"], signature.outputs["y"]
        given.name, taken.name = f"in_{name}:0", f"out_{name}:0"
        given.dtype = taken.dtype = data_type
        for each in (shape, given.tensor_shape, taken.tensor_shape):
            if name == "pair":
                each.dim.add(size=-1)
                each.dim.add(size=2)
            else:
                each.unknown_rank = True
    meta_graph.signature_def["serving_default"].CopyFrom(meta_graph.signature_def["FP32"])
    version = folder / "1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(saved_model.SerializeToString())
    return folder
