"""Reads of variables inside a loop move before it, if the loop writes no variable.

A While that gets the handle of a variable and only reads the variable gets its value instead; its
functions are replaced by derived ones without the reads. So a variable is read once a loop rather
than once an iteration, and passes that look for what depends on variables only see the reads. A
loop that then has no effect becomes a StatelessWhile, and nothing waits for it by a control edge.

An uninitialised variable then is an error even if the loop has no iteration (DIFFERENCES.md).

TF: none; grappler moves invariant nodes of version 1 loops only (loop_optimizer.cc).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from runtime.foundation.errors import OpError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import FunctionBody, FunctionLibrary, op_info
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.function_inlining import inline_functions
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import is_loop_node
from runtime.graph.variable_access import handle_origin, read_only_variables, writes_variables

_LOOPS = frozenset(("While", "StatelessWhile"))
_READ = "ReadVariableOp"


@dataclasses.dataclass(frozen=True, slots=True)
class _Loop:
    """A loop that writes nothing, its functions, and which of its handles can become values."""

    node: Node
    functions: Mapping[str, StepGraph]  # attribute `body` or `cond` → a copy of the function
    dtypes: Mapping[int, DataType]  # index of a handle among the inputs → type of the variable

    def reads(self, attribute: str) -> dict[Node, Node]:
        """Return {node that reads a variable: its argument} of the reads that can move."""
        arguments = {self.functions[attribute].arguments[index] for index in self.dtypes}
        return {
            node: node.inputs[0][0]
            for node in self.functions[attribute].nodes
            if node.op == _READ and node.inputs[0][0] in arguments
        }


def move_reads_before_loops(graph: StepGraph, library: FunctionLibrary) -> None:
    """Change `graph`: its loops get values of variables in place of handles, where that is sound.

    Nothing changes in a graph with version 1 control flow, whose loops may never run.
    """
    nodes = [node for node in graph.nodes if node.op in _LOOPS]
    if not nodes or any(is_loop_node(node) for node in graph.nodes):
        return
    read = {endpoint for node in graph.nodes for endpoint in node.inputs} | set(graph.fetches)
    loops = [loop for node in nodes if (loop := _harmless(node, library, read)) is not None]
    harmless = {loop.node for loop in loops}
    others = [node for node in graph.nodes if node not in harmless]
    unwritten = read_only_variables(dataclasses.replace(graph, nodes=others), library)
    names = {node.name for node in graph.nodes}
    for loop in loops:
        reads = _reads_before(loop, unwritten, names)
        _become_derived(loop, library)
        for index, value in reads.items():
            loop.node.inputs[index] = (value, 0)
        graph.nodes += reads.values()
    _forget_order(graph, {node for node in harmless if node.op == "StatelessWhile"}, read)


def _harmless(node: Node, library: FunctionLibrary, read: set[Endpoint]) -> _Loop | None:
    """Return the loop `node` if it writes nothing, else None; `read` are the endpoints in use."""
    try:
        functions = {name: _inlined(node.attr(name), library) for name in ("body", "cond")}
    except OpError:
        return None  # a function that can't be built is an error of the step that reaches the loop
    body, cond = functions.values()
    if not len(body.arguments) == len(body.fetches) == len(cond.arguments) == len(node.inputs):
        return None
    nodes = [*body.nodes, *cond.nodes]
    if writes_variables(nodes, library):
        return None
    dtypes: dict[int, DataType] = {}
    for index, endpoint in enumerate(body.fetches):
        if endpoint != (body.arguments[index], 0) or (node, index) in read:
            continue
        handles = {(body.arguments[index], 0), (cond.arguments[index], 0)}
        readers = [each for each in nodes if not handles.isdisjoint(each.inputs)]
        types = {each.output_types for each in readers}
        if len(types) == 1 and all(each.op == _READ for each in readers):
            dtypes[index] = readers[0].output_types[0]
    return _Loop(node, functions, dtypes)


def _inlined(function: NameAttrList, library: FunctionLibrary) -> StepGraph:
    """Return a copy of a function, with the functions that it calls in it."""
    body = library.body(function)
    copies = {node: node.clone() for node in body.nodes}
    for copy in copies.values():
        copy.inputs = [(copies[source], index) for source, index in copy.inputs]
        copy.control_inputs = [copies[control] for control in copy.control_inputs]
    graph = StepGraph(
        list(copies.values()),
        [copies[argument] for argument in body.arguments],
        [(copies[source], index) for source, index in body.results],
        [copies[node] for node in body.control_results],
    )
    inline_functions(graph, library)
    return graph


def _reads_before(loop: _Loop, unwritten: Collection[Node], names: set[str]) -> dict[int, Node]:
    """Return {index of a handle: new node that reads the variable}.

    The names of the nodes are those that the reads in the functions have in errors.
    """
    reads: dict[int, Node] = {}
    for attribute, function in loop.functions.items():
        prefix = loop.node.attr(attribute).name
        index_of = {argument: index for index, argument in enumerate(function.arguments)}
        for read, argument in loop.reads(attribute).items():
            index = index_of[argument]
            if index not in reads:
                reads[index] = _read_before(loop.node, index, read, f"{prefix}/{read.name}")
    for read in reads.values():
        while read.name in names:
            read.name += "_"
        names.add(read.name)
        # What the step itself writes may have to be written before the loop gets its inputs.
        if handle_origin(read.inputs[0]) not in unwritten:
            sources = [source for source, _ in loop.node.inputs if source is not read.inputs[0][0]]
            read.control_inputs = list(dict.fromkeys([*loop.node.control_inputs, *sources]))
    return reads


def _read_before(loop: Node, index: int, read: Node, name: str) -> Node:
    moved = read.clone(name)
    moved.inputs = [loop.inputs[index]]
    moved.control_inputs = []
    moved.device = read.device or loop.device
    return moved


def _become_derived(loop: _Loop, library: FunctionLibrary) -> None:
    """Give the node of the loop derived functions, which take values for the handles.

    A loop without handles to replace keeps its functions.
    """
    node = loop.node
    attrs = node.attr_values()
    is_pure = not any(
        _has_effect(each) and each not in loop.reads(attribute)
        for attribute, function in loop.functions.items()
        for each in function.nodes
    )
    if loop.dtypes:
        for attribute in loop.functions:
            attrs[attribute] = _derived(loop, attribute, library)
        attrs["T"] = tuple(
            loop.dtypes.get(index, dtype) for index, dtype in enumerate(node.attr("T"))
        )
    info = op_info("StatelessWhile" if is_pure else node.op)
    assert info is not None
    node.become(info, attrs)
    node.set_types()
    node.expected_inputs()


def _derived(loop: _Loop, attribute: str, library: FunctionLibrary) -> NameAttrList:
    """Return a function of the loop that takes values for the handles, and add it to `library`."""
    function: NameAttrList = loop.node.attr(attribute)
    values = ",".join(f"{index}:{dtype.name}" for index, dtype in sorted(loop.dtypes.items()))
    # No function of a graph has such a name, since `:` can't be in the name of an op.
    derived = NameAttrList(f"{function.name}:values({values})", function.attrs)
    library.derived_body(
        derived, lambda: _body_of_values(loop, attribute, derived.name), origin=function.name
    )
    return derived


def _body_of_values(loop: _Loop, attribute: str, name: str) -> FunctionBody:
    graph = loop.functions[attribute]
    reads = loop.reads(attribute)
    for index, dtype in loop.dtypes.items():
        argument = graph.arguments[index]
        assert argument is not None
        argument.set_attrs({"T": dtype, "index": index})
        argument.output_types = (dtype,)
    nodes = [node for node in graph.nodes if node not in reads]
    for node in nodes:
        node.inputs = [
            (reads[source], 0) if source in reads else (source, index)
            for source, index in node.inputs
        ]
        node.control_inputs = [each for each in node.control_inputs if each not in reads]
    return FunctionBody(
        name,
        tuple(nodes),
        tuple(each for each in graph.arguments if each is not None),
        tuple(
            (reads[source], 0) if source in reads else (source, index)
            for source, index in graph.fetches
        ),
        tuple(node for node in graph.targets if node not in reads),
        any(_has_effect(node) for node in nodes),
    )


def _has_effect(node: Node) -> bool:
    return node.info.is_stateful and node.op != "_Arg"


def _forget_order(graph: StepGraph, pure: set[Node], read: set[Endpoint]) -> None:
    """Remove control edges from nodes without an effect, of which an output is read."""
    idle = {node for node in pure if any((node, i) in read for i in range(len(node.output_types)))}
    if idle:
        for node in graph.nodes:
            node.control_inputs = [each for each in node.control_inputs if each not in idle]
