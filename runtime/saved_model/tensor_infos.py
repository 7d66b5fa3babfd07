"""Lists and renames the tensors of a signature's inputs and outputs.

Each input or output is one tensor, or a SparseTensor or another composite of several tensors.

TF: tensorflow/core/protobuf/meta_graph.proto, TensorInfo.encoding
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import protos as pb

_SPARSE_PARTS = ("values_tensor_name", "indices_tensor_name", "dense_shape_tensor_name")


def tensor_names(infos: Iterable[pb.TensorInfo]) -> list[str]:
    """Return the names of all tensors of `infos`, in order."""
    names = []
    for info in infos:
        encoding = info.WhichOneof("encoding")
        if encoding == "coo_sparse":
            names += [getattr(info.coo_sparse, part) for part in _SPARSE_PARTS]
        elif encoding == "composite_tensor":
            names += tensor_names(info.composite_tensor.components)
        else:
            names.append(info.name)
    return [name for name in names if name]


def rename_tensors(info: pb.TensorInfo, names: Mapping[str, str]) -> None:
    """Change `info`: replace each tensor name that is a key of `names` by the value in `names`."""
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        for part in _SPARSE_PARTS:
            name = getattr(info.coo_sparse, part)
            setattr(info.coo_sparse, part, names.get(name, name))
    elif encoding == "composite_tensor":
        for component in info.composite_tensor.components:
            rename_tensors(component, names)
    else:
        info.name = names.get(info.name, info.name)
