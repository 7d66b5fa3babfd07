"""Keys of a signature's inputs or outputs, and the tensors that they stand for.

Knows TensorInfo messages by their fields alone: TensorFlow's and ours both do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FROZEN_GRAPH = (
    "frozen.pb"  # in the place of saved_model.pb: a GraphDef, its keys are tensors' names
)
_SPARSE_PARTS = ("indices", "values", "dense_shape")


def tensor_names(infos: Mapping[str, Any]) -> dict[str, str]:
    """{key: name of its tensor}; a SparseTensor has the keys `key.indices`, `key.values`, …"""
    names = {}
    for key, info in infos.items():
        if info.HasField("coo_sparse"):
            for part in _SPARSE_PARTS:
                names[f"{key}.{part}"] = getattr(info.coo_sparse, f"{part}_tensor_name")
        else:
            names[key] = info.name
    return names
