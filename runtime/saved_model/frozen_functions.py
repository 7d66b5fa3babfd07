"""Rewrites nodes and functions that take handles of variables so that they take the values.

TF: tensorflow/python/framework/convert_to_constants.py (_ReadVariable, _While, _If, …)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import protos as pb
from runtime.foundation.errors import UnimplementedError
from runtime.framework import attr_value
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import FunctionLibrary

# For each input: the type of the variable's value; None if the input is not a variable.
Types = Sequence[DataType | None]
# op that calls functions → (names of the attributes that hold the functions, number of inputs that
# precede the arguments of the functions)
_CALLERS: dict[str, tuple[tuple[str, ...], int]] = {
    "If": (("then_branch", "else_branch"), 1),
    "StatelessIf": (("then_branch", "else_branch"), 1),
    "While": (("cond", "body"), 0),
    "StatelessWhile": (("cond", "body"), 0),
    "PartitionedCall": (("f",), 0),
    "StatefulPartitionedCall": (("f",), 0),
}
_LOOPS = ("While", "StatelessWhile")
# op that forwards its input → name of its type attribute
_FORWARDING_OPS = {"Identity": "T", "Enter": "T", "Switch": "T", "Merge": "T", "Exit": "T",
            "NextIteration": "T"}  # fmt: skip


class FunctionFreezer:
    """Rewrites nodes so that they take values, not handles; makes the function copies for them."""

    def __init__(self, library: FunctionLibrary) -> None:
        self._library = library
        self._specialised: dict[tuple[str, tuple[DataType | None, ...]], pb.FunctionDef] = {}
        self._rewriters: dict[str, Callable[[pb.NodeDef, Types], dict[int, DataType]]] = {
            "ReadVariableOp": self._read,
            "ResourceGather": self._gather,
            **dict.fromkeys(_FORWARDING_OPS, self._forward),
            **dict.fromkeys(_CALLERS, self._call),
        }

    def freeze_node(self, node: pb.NodeDef, types: Types) -> dict[int, DataType]:
        """Change `node` so that it takes values for the inputs that have a type in `types`.

        Return {output index: type} of the outputs that were handles and are now values. Raises
        UnimplementedError if the op of `node` does more with a variable than read it.
        """
        if not any(types):
            return {}
        rewrite = self._rewriters.get(node.op)
        if rewrite is None:
            raise UnimplementedError(
                f"Can't freeze: {node.op} takes a variable and does not only read it", node.name
            )
        return rewrite(node, types)

    def library_of(self, nodes: Iterable[pb.NodeDef]) -> pb.FunctionDefLibrary:
        """Return the functions that `nodes` call, directly or through other functions."""
        specialised = {function.signature.name: function for function in self._specialised.values()}
        found: dict[str, pb.FunctionDef] = {}
        pending = list(nodes)
        while pending:
            node = pending.pop()
            for name in _called(node):
                if name not in found and (name in specialised or name in self._library):
                    found[name] = (
                        specialised[name] if name in specialised else self._library.definition(name)
                    )
                    pending += found[name].node_def
        return pb.FunctionDefLibrary(function=found.values())

    def _read(self, node: pb.NodeDef, types: Types) -> dict[int, DataType]:
        node.op = "Identity"
        _keep_attrs(node, {"T": types[0]})
        return {}

    def _gather(self, node: pb.NodeDef, types: Types) -> dict[int, DataType]:
        """Turn a ResourceGather into a Gather; GatherV2 would need another constant for the axis.

        Raises UnimplementedError if the attribute `batch_dims` is not 0.
        """
        if node.attr["batch_dims"].i:
            raise UnimplementedError("Can't freeze: ResourceGather with batch_dims", node.name)
        indices = attr_value.from_proto(node.attr["Tindices"])
        node.op = "Gather"
        _keep_attrs(node, {"Tparams": types[0], "Tindices": indices, "validate_indices": True})
        return {}

    def _forward(self, node: pb.NodeDef, types: Types) -> dict[int, DataType]:
        dtype = next(each for each in types if each is not None)
        node.attr[_FORWARDING_OPS[node.op]].CopyFrom(attr_value.to_proto(dtype))
        return {0: dtype, 1: dtype} if node.op == "Switch" else {0: dtype}

    def _call(self, node: pb.NodeDef, types: Types) -> dict[int, DataType]:
        attrs, skipped = _CALLERS[node.op]
        inner = types[skipped:]
        for name in attrs:
            function = node.attr[name].func
            function.name = self._specialise(function.name, inner).signature.name
        is_loop = node.op in _LOOPS
        listed = node.attr["T" if is_loop else "Tin"].list.type
        for index, dtype in enumerate(inner):
            if dtype is not None:
                # DataType has the same numbers as the enum in the proto.
                listed[index] = int(dtype)  # type: ignore[call-overload] # same numbers
        if not is_loop:
            return {}
        node.attr.pop("_read_only_resource_inputs", None)
        return {index: dtype for index, dtype in enumerate(inner) if dtype is not None}

    def _specialise(self, name: str, types: Types) -> pb.FunctionDef:
        """Return a copy of the function `name` that takes values for some arguments.

        These are the arguments that have a type in `types`. The copy is made once per set of types.
        """
        key = name, tuple(types)
        if key not in self._specialised:
            function = pb.FunctionDef()
            function.CopyFrom(self._library.definition(name))
            function.signature.name = f"{name}_frozen_{len(self._specialised)}"
            self._specialised[key] = function
            self._rewrite_body(function, types)
        return self._specialised[key]

    def _rewrite_body(self, function: pb.FunctionDef, types: Types) -> None:
        # name of a tensor of the body that was a handle and is now a value → type of the value
        values: dict[str, DataType] = {}
        for index, (argument, dtype) in enumerate(
            zip(function.signature.input_arg, types, strict=True)
        ):
            if dtype is not None:
                argument.type = int(dtype)  # type: ignore[assignment] # same numbers
                values[argument.name] = dtype
                if index in function.arg_attr:  # Remove the attribute that describes the handle.
                    function.arg_attr[index].attr.pop("_handle_dtypes", None)
        pending = list(function.node_def)
        while True:  # Repeat until no node that is left reads a tensor that is now a value.
            waiting = [node for node in pending if any(text in values for text in node.input)]
            if not waiting:
                break
            pending = [node for node in pending if node not in waiting]
            for node in waiting:
                self._rewrite_node(function, node, values)
        for output in function.signature.output_arg:
            source = function.ret[output.name]
            if source in values:
                output.type = int(values[source])  # type: ignore[assignment] # same numbers

    def _rewrite_node(
        self, function: pb.FunctionDef, node: pb.NodeDef, values: dict[str, DataType]
    ) -> None:
        """Rewrite `node`, a node of the body; add its outputs that are now values to `values`."""
        was_read = node.op == "ReadVariableOp"
        data = [text for text in node.input if not text.startswith("^")]
        value_outputs = self.freeze_node(node, [values.get(text) for text in data])
        for index, dtype in value_outputs.items():
            values[f"{node.name}:output:{index}"] = dtype
        if was_read:  # The node is now an Identity, whose output has another name.
            _rename_reference(function, f"{node.name}:value:0", f"{node.name}:output:0")


def _rename_reference(function: pb.FunctionDef, old: str, new: str) -> None:
    for node in function.node_def:
        for index, text in enumerate(node.input):
            if text == old:
                node.input[index] = new
    for name, text in function.ret.items():
        if text == old:
            function.ret[name] = new


def _keep_attrs(node: pb.NodeDef, attrs: Mapping[str, object]) -> None:
    """Replace the attributes of `node` by `attrs`.

    Attributes whose names start with an underscore are kept, unless they describe handles.
    """
    for name in list(node.attr):
        if not name.startswith("_") or name in ("_handle_dtypes", "_handle_shapes"):
            del node.attr[name]
    for name, value in attrs.items():
        node.attr[name].CopyFrom(attr_value.to_proto(value))


def _called(node: pb.NodeDef) -> list[str]:
    names = [node.op]
    for attr in node.attr.values():
        if attr.HasField("func"):
            names.append(attr.func.name)
        names += [function.name for function in attr.list.func]
    return names
