"""Functions of a graph: their definitions, and their bodies, built for given attribute values.

Guarantees: the functions of a library never change; `merged` returns a new library. The body of a
function is built once per set of attribute values, even if several threads request it at the same
time, and kept until `drop_built`. Libraries that `merged` returns later share the body.

TF: tensorflow/core/framework/function.h (FunctionLibraryDefinition, InstantiateFunction)
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework import op_def_registry
from runtime.framework.attr_value import AttributeValue, NameAttrList
from runtime.framework.dtypes import DataType
from runtime.graph.node import Endpoint, Node, OpInfo, substitute
from runtime.graph.node_checks import check_attrs, check_complete, check_edge
from runtime.graph.tensor_name import parse_index

# Written without a lock: dict writes are atomic, and two threads at worst build equal infos.
_op_infos: dict[str, OpInfo] = {}
_ARG_INFO = OpInfo(op_def_registry.look_up("_Arg"))


def op_info(op: str) -> OpInfo | None:
    """Return the OpInfo of the op named `op`; None if no op with this name is registered."""
    info = _op_infos.get(op)
    if info is None:
        op_def = op_def_registry.find(op)
        if op_def is None:
            return None
        info = _op_infos[op] = OpInfo(op_def)
    return info


@dataclasses.dataclass(frozen=True, slots=True)
class FunctionBody:
    """A function whose attributes have values: its nodes, arguments, results, control results."""

    name: str
    nodes: tuple[Node, ...]
    arguments: tuple[Node, ...]  # one `_Arg` node per argument, in the order of the signature
    results: tuple[Endpoint, ...]
    control_results: tuple[Node, ...]  # nodes that must run even if no result depends on them
    is_stateful: bool


class FunctionLibrary:
    """The functions that a graph's nodes may call."""

    def __init__(self, functions: Iterable[pb.FunctionDef] = ()) -> None:
        self._functions: dict[str, pb.FunctionDef] = {}
        self._gradients: dict[str, str] = {}  # name of a function → name of its gradient function
        self._infos: dict[str, OpInfo] = {}
        self._bodies: dict[tuple[str, str], FunctionBody] = {}
        self._origins: dict[str, str] = {}  # name of a derived function → of what it derives from
        self._lock = threading.RLock()  # held while a body is built and added to `_bodies`
        # Executors of bodies, by `key`. The code that compiles bodies adds them; they live as long
        # as the library.
        self.compiled: dict[tuple[str, str], Any] = {}
        for function in functions:
            self._functions[function.signature.name] = function

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def __len__(self) -> int:
        return len(self._functions)

    @property
    def names(self) -> list[str]:
        """The names of all functions."""
        return list(self._functions)

    def definition(self, name: str) -> pb.FunctionDef:
        """Return the FunctionDef of the function `name`, or of what it is derived from.

        Raises InvalidArgumentError if the library has no such function.
        """
        try:
            return self._functions[self._origins.get(name, name)]
        except KeyError:
            raise InvalidArgumentError(
                f'Failed to find function "{name}" in function library: '
                f"{_shorten(sorted(self._functions))}"
            ) from None

    def gradient_of(self, name: str) -> str | None:
        """Return the name of the gradient function that the graph declares for the function `name`.

        Return None if the graph declares none.
        """
        return self._gradients.get(name)

    def reachable(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """Return the functions `names`, all functions that they call, and declared gradients.

        Calls through other functions and calls in gradient functions are followed too.
        """
        found: dict[str, pb.FunctionDef] = {}
        pending = list(names)
        while pending:
            definition = self.definition(pending.pop())
            name = definition.signature.name
            if name not in found:
                found[name] = definition
                pending += _called_by(definition, self._functions)
                if name in self._gradients:
                    pending.append(self._gradients[name])
        return self.part(sorted(found))

    def to_proto(self) -> pb.FunctionDefLibrary:
        """Return the whole library as a FunctionDefLibrary."""
        return self.part(self._functions)

    def part(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """Return a FunctionDefLibrary of the functions `names`, without the functions they call.

        It includes the declarations that give these functions a gradient function.
        """
        part = pb.FunctionDefLibrary()
        for name in names:
            part.function.append(self.definition(name))
            if name in self._gradients:
                part.gradient.add(function_name=name, gradient_func=self._gradients[name])
        return part

    def merged(self, library: pb.FunctionDefLibrary) -> FunctionLibrary:
        """Return a new library with the functions of this library and the functions of `library`.

        Raises InvalidArgumentError if both define a function of the same name but with different
        definitions or gradient functions, or if a new function has the name of a registered op.
        """
        if not library.function and not library.gradient:
            return self
        merged = FunctionLibrary()
        merged._functions, merged._gradients = dict(self._functions), dict(self._gradients)
        for gradient in library.gradient:
            derives = merged._gradients.setdefault(gradient.function_name, gradient.gradient_func)
            if derives != gradient.gradient_func:
                raise InvalidArgumentError(
                    f"Cannot assign gradient function '{gradient.gradient_func}' to "
                    f"'{gradient.function_name}' because it already has gradient function "
                    f"'{derives}'"
                )
        for function in library.function:
            name = function.signature.name
            known = merged._functions.get(name)
            if known is not None and known != function:
                raise InvalidArgumentError(
                    f"Cannot add function '{name}' because a different function with the same "
                    "name already exists."
                )
            if known is None and op_info(name) is not None:
                raise InvalidArgumentError(
                    f"Cannot add function '{name}' because an op with the same name already exists."
                )
            merged._functions[name] = known or function
        # The merged library has all definitions of this one, so it can use what was built from
        # them. The dicts are copied because another library merged from this one may give a new
        # name another definition.
        with self._lock:
            merged._infos, merged._bodies = dict(self._infos), dict(self._bodies)
            merged._origins = dict(self._origins)
            merged.compiled = dict(self.compiled)
        return merged

    def find_info(self, op: str) -> OpInfo | None:
        """Return the OpInfo of the registered op or of the function named `op`.

        Return None if neither exists. A node calls a function if its op is the function's name.
        """
        info = op_info(op)
        if info is None and op in self._functions:
            info = self._infos.get(op)
            if info is None:
                info = self._infos[op] = OpInfo(self._functions[op].signature)
        return info

    def body(self, function: NameAttrList) -> FunctionBody:
        """Return the body of `function`, built with the attribute values `function.attrs`.

        Raises InvalidArgumentError or NotFoundError if the function is unknown or malformed.
        """
        key = self.key(function)
        body = self._bodies.get(key)
        if body is None:
            with self._lock:
                body = self._bodies.get(key)
                if body is None:
                    definition = self.definition(function.name)
                    attrs = function.attrs if definition.signature.attr else {}
                    body = self._bodies[key] = _BodyBuilder(self, definition, attrs).build()
        return body

    def derived_body(
        self, function: NameAttrList, build: Callable[[], FunctionBody], origin: str = ""
    ) -> FunctionBody:
        """Return the body of a `function` that is derived from other bodies, such as a gradient.

        The first call for a `function` calls `build`; later calls return the same body. `origin` is
        the name of the function that has the same effects, if there is one.
        """
        key = self.key(function)
        with self._lock:
            if origin:
                self._origins[function.name] = origin
            if key not in self._bodies:
                self._bodies[key] = build()
            return self._bodies[key]

    def drop_built(self) -> None:
        """Drop the bodies of definitions, and executors; what is called again is built again."""
        with self._lock:
            for key in [key for key in self._bodies if key[0] in self._functions]:
                del self._bodies[key]
            self.compiled.clear()

    def key(self, function: NameAttrList) -> tuple[str, str]:
        """Return the cache key of a body: (name of the function, its attribute values as text).

        The text is empty if the function takes no attributes.
        """
        known = self._functions.get(function.name)
        if not function.attrs or (known is not None and not known.signature.attr):
            return function.name, ""
        return function.name, repr(sorted(function.attrs.items()))


def _called_by(function: pb.FunctionDef, known: Mapping[str, pb.FunctionDef]) -> Iterator[str]:
    for node in function.node_def:
        if node.op in known:
            yield node.op
        for name in _named_in(node.attr.values()):
            if name in known:
                yield name


def _named_in(values: Iterable[pb.AttrValue]) -> Iterator[str]:
    """Yield the names of the functions that occur in attribute values.

    The attributes of these functions are searched too.
    """
    for value in values:
        for function in (value.func, *value.list.func):
            yield function.name
            yield from _named_in(function.attr.values())


def _shorten(names: list[str]) -> str:
    shown = ", ".join(names[:20])
    return shown if len(names) <= 20 else f"{shown}, … ({len(names)} functions)"


class _BodyBuilder:
    """Builds the FunctionBody of one function for one set of attribute values."""

    def __init__(
        self,
        library: FunctionLibrary,
        definition: pb.FunctionDef,
        given: Mapping[str, AttributeValue],
    ) -> None:
        self._library = library
        self._definition = definition
        self._attrs = {**_default_attrs(definition), **given}
        self._nodes: dict[str, Node] = {}
        # input argument in the signature → its `_Arg` nodes, one per element
        self._list_arguments: dict[str, list[Node]] = {}
        self._where = f"function {definition.signature.name}"

    def build(self) -> FunctionBody:
        """Return the body.

        Raises InvalidArgumentError or NotFoundError if the definition is malformed.
        """
        signature = self._definition.signature
        arguments = self._arguments()
        for node_def in self._definition.node_def:
            self._add(node_def)
        for node_def in self._definition.node_def:
            self._connect(self._nodes[node_def.name], node_def)
        results = tuple(
            endpoint for output in signature.output_arg for endpoint in self._result(output.name)
        )
        controls = tuple(
            self._node(name) for name in dict.fromkeys(self._definition.control_ret.values())
        )
        return FunctionBody(
            signature.name,
            tuple(self._nodes.values()),
            tuple(arguments),
            results,
            controls,
            signature.is_stateful,
        )

    def _arguments(self) -> list[Node]:
        """Add and return an `_Arg` node for each input, and for each element of a list input."""
        arguments: list[Node] = []
        probe = Node("", OpInfo(self._definition.signature), pb.NodeDef(), dict(self._attrs))
        for argument in probe.info.inputs:
            types, _ = probe.types_of((argument,))
            nodes = [
                self._argument(data_type, len(arguments) + i) for i, data_type in enumerate(types)
            ]
            for i, node in enumerate(nodes):
                node.name = argument.name if len(nodes) == 1 else f"{argument.name}_{i}"
                self._nodes[node.name] = node
            self._list_arguments[argument.name] = nodes
            arguments += nodes
        return arguments

    def _argument(self, data_type: DataType, index: int) -> Node:
        node = Node("", _ARG_INFO, pb.NodeDef(op="_Arg"), {"T": data_type, "index": index})
        node.output_types, node.output_is_ref = (data_type,), (False,)
        return node

    def _add(self, node_def: pb.NodeDef) -> None:
        info = self._library.find_info(node_def.op)
        if info is None:
            raise NotFoundError(op_def_registry.unknown_op_message(node_def.op), node_def.name)
        if node_def.name in self._nodes:
            raise InvalidArgumentError(f"Node '{node_def.name}' is not unique in {self._where}")
        node = Node(node_def.name, info, node_def)
        if self._attrs:
            self._substitute(node)
        check_attrs(node)
        node.set_types()
        self._nodes[node_def.name] = node

    def _substitute(self, node: Node) -> None:
        for name, value in node.node_def.attr.items():
            if value.WhichOneof("value") in ("placeholder", "func"):
                node._attrs[name] = substitute(node.attr(name), self._attrs)

    def _connect(self, node: Node, node_def: pb.NodeDef) -> None:
        expected = node.expected_inputs()
        for text in node_def.input:
            if text.startswith("^"):
                node.control_inputs.append(self._node(text[1:]))
                continue
            for source, index in self._endpoints(text):
                check_edge(node, source, index, expected)
                node.inputs.append((source, index))
        node.fit_edges()
        node.missing_inputs = len(expected) - len(node.inputs)
        check_complete(node)

    def _node(self, name: str) -> Node:
        try:
            return self._nodes[name]
        except KeyError:
            raise InvalidArgumentError(f"{self._where} has no node '{name}'") from None

    def _endpoints(self, text: str) -> list[Endpoint]:
        """Return the outputs to which the input string `text` of a node refers.

        `text` is `argument`, `node:output` or `node:output:i`. If it has no index, a list argument
        or a list output contributes all its elements.
        """
        name, *rest = text.split(":")
        if name in self._list_arguments:
            nodes = self._list_arguments[name]
            index = parse_index(rest[-1]) if rest else None
            chosen = nodes if index is None or len(nodes) == 1 else nodes[index : index + 1]
            return [(node, 0) for node in chosen]
        node = self._node(name)
        if not rest:
            return [(node, index) for index in range(len(node.output_types))]
        first = 0
        for output in node.info.outputs:
            count = len(node.types_of((output,))[0])
            if output.name == rest[0]:
                if len(rest) == 1:
                    return [(node, index) for index in range(first, first + count)]
                index = parse_index(rest[1])
                if index is None or index >= count:
                    break
                return [(node, first + index)]
            first += count
        raise InvalidArgumentError(f"Node {name} of {self._where} has no output '{text}'")

    def _result(self, output: str) -> list[Endpoint]:
        text = self._definition.ret.get(output)
        if text is None:
            raise InvalidArgumentError(f"{self._where} does not say what '{output}' returns")
        return self._endpoints(text)


def _default_attrs(definition: pb.FunctionDef) -> dict[str, AttributeValue]:
    info = OpInfo(definition.signature)
    probe = Node("", info, pb.NodeDef())
    return {name: probe.attr(name) for name in info.defaults}
