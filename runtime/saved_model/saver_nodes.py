"""Makes the nodes that save and restore a graph's variables, and the SaverDef that names them.

In the checkpoint, variables have the names of their nodes, which are unique in the graph.

TF: tensorflow/python/training/saver.py (BulkSaverBuilder)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

import protos as pb
from runtime.framework import attr_value
from runtime.framework.attr_value import AttributeValue
from runtime.framework.dtypes import DataType, from_number

RESOURCE_VARIABLE = "VarHandleOp"
REFERENCE_VARIABLES = ("VariableV2", "Variable")
_MAX_TO_KEEP = 5  # number of checkpoints; the same default as in TensorFlow's Saver
_KEEP_EVERY_HOURS = 10_000.0


@dataclasses.dataclass(frozen=True, slots=True)
class SaverNodes:
    """Nodes to add to a graph to save and restore its variables.

    The keys of `reads` and `dtypes` are the names of the variables in the checkpoint; the values of
    `reads` are the names of the tensors to fetch to read the variables.
    """

    nodes: list[pb.NodeDef]
    saver_def: pb.SaverDef
    reads: dict[str, str]
    dtypes: dict[str, DataType]


def find_variables(graph_def: pb.GraphDef) -> list[pb.NodeDef]:
    """Return the nodes of the graph that are resource variables or reference variables."""
    kinds = (RESOURCE_VARIABLE, *REFERENCE_VARIABLES)
    return [node for node in graph_def.node if node.op in kinds]


def free_prefix(graph_def: pb.GraphDef, wanted: str = "save") -> str:
    """Return a name prefix that no node of the graph has.

    It is `wanted`, or `wanted` with a number appended if the graph has nodes under `wanted`.
    """
    taken = {node.name.split("/", 1)[0] for node in graph_def.node}
    names = (wanted, *(f"{wanted}_{number}" for number in range(1, len(taken) + 2)))
    return next(name for name in names if name not in taken)


def saver_nodes(variables: Sequence[pb.NodeDef], prefix: str) -> SaverNodes:
    """Return nodes under the name prefix `prefix` that save and restore `variables`."""
    dtypes = {node.name: from_number(node.attr["dtype"].type)[0] for node in variables}
    builder = _Builder(prefix, dtypes)
    filename = builder.filename()
    reads = {node.name: builder.read(node) for node in variables}
    builder.save(filename, reads)
    builder.restore(filename, variables)
    saver_def = pb.SaverDef(
        filename_tensor_name=f"{filename}:0",
        save_tensor_name=f"{prefix}/control_dependency:0",
        restore_op_name=f"{prefix}/restore_all",
        max_to_keep=_MAX_TO_KEEP,
        keep_checkpoint_every_n_hours=_KEEP_EVERY_HOURS,
        version=pb.SaverDef.V2,
    )
    fetched = {name: f"{read}:0" for name, read in reads.items()}
    return SaverNodes(builder.nodes, saver_def, fetched, dtypes)


class _Builder:
    """Adds nodes under a name prefix; methods that return a string return the new node's name."""

    def __init__(self, prefix: str, dtypes: dict[str, DataType]) -> None:
        self._prefix = prefix
        self._dtypes = dtypes
        self.nodes: list[pb.NodeDef] = []

    def filename(self) -> str:
        """Add the string scalar that must be fed with the file name to save or restore."""
        default = self._strings("filename/input", b"model")
        attrs = {"dtype": DataType.STRING, "shape": attr_value.shape_attr(())}
        inner = self._add("filename", "PlaceholderWithDefault", [default], **attrs)
        return self._add("Const", "PlaceholderWithDefault", [inner], **attrs)

    def read(self, variable: pb.NodeDef) -> str:
        """Add a node that reads `variable`."""
        name = f"Read/{len(self.nodes)}"
        dtype = self._dtypes[variable.name]
        if variable.op == RESOURCE_VARIABLE:
            return self._add(name, "ReadVariableOp", [variable.name], dtype=dtype)
        return self._add(name, "Identity", [variable.name], T=dtype)

    def save(self, filename: str, reads: dict[str, str]) -> None:
        """Add SaveV2, and an Identity that waits for it, which is fetched in order to save."""
        names, slices = self._names("SaveV2")
        save = self._add(
            "SaveV2", "SaveV2", [filename, names, slices, *reads.values()], dtypes=self._types
        )
        self._add("control_dependency", "Identity", [filename, f"^{save}"], T=DataType.STRING)

    def restore(self, filename: str, variables: Iterable[pb.NodeDef]) -> None:
        """Add RestoreV2, an assignment to each variable, and a NoOp that waits for them all."""
        names, slices = self._names("RestoreV2")
        restore = self._add("RestoreV2", "RestoreV2", [filename, names, slices], dtypes=self._types)
        done = [
            self._assign(variable, f"{restore}:{index}" if index else restore)
            for index, variable in enumerate(variables)
        ]
        self._add("restore_all", "NoOp", [f"^{name}" for name in done])

    def _assign(self, variable: pb.NodeDef, value: str) -> str:
        dtype, name = self._dtypes[variable.name], f"Assign/{len(self.nodes)}"
        if variable.op == RESOURCE_VARIABLE:
            return self._add(name, "AssignVariableOp", [variable.name, value], dtype=dtype)
        attrs = {"T": dtype, "use_locking": True, "validate_shape": True}
        return self._add(name, "Assign", [variable.name, value], **attrs)

    @property
    def _types(self) -> tuple[DataType, ...]:
        return tuple(self._dtypes.values())

    def _names(self, op: str) -> tuple[str, str]:
        keys = [attr_value.raw_bytes(name) for name in self._dtypes]
        return (
            self._strings(f"{op}/tensor_names", keys),
            self._strings(f"{op}/shape_and_slices", [b""] * len(keys)),
        )

    def _strings(self, name: str, values: bytes | list[bytes]) -> str:
        return self._add(name, "Const", dtype=DataType.STRING, value=np.array(values, object))

    def _add(self, name: str, op: str, inputs: Sequence[str] = (), **attrs: AttributeValue) -> str:
        full = f"{self._prefix}/{name}"
        protos = {key: attr_value.to_proto(value) for key, value in attrs.items()}
        self.nodes.append(pb.NodeDef(name=full, op=op, input=inputs, attr=protos))
        return full
