"""The ops that a meta graph needs, and which of them this runtime can't run.

TF: `saved_model_cli show` lists the ops; the signatures that reach an op are reported only here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import protos as pb
from runtime.framework import op_def_registry, op_packages
from runtime.saved_model.initialization import INIT_OP_SIGNATURE_KEY, TRAIN_OP_SIGNATURE_KEY
from runtime.saved_model.tensor_infos import tensor_names

_NOT_SERVED = (INIT_OP_SIGNATURE_KEY, TRAIN_OP_SIGNATURE_KEY)


@dataclasses.dataclass(frozen=True, slots=True)
class OpReport:
    """The ops of a meta graph, each with the names of its nodes.

    A node of a function has the name `function/node`. The ops in `unknown` are not registered, so
    the graph can't be created if there are any. A step (one Session.run) that reaches an op in
    `without_kernel` fails. `reached_by` maps "signature <key>", "restore op" or "init op" to the
    ops without a kernel that it reaches; it is empty if the model can be served.
    """

    ops: dict[str, list[str]]
    unknown: dict[str, list[str]]
    without_kernel: dict[str, list[str]]
    reached_by: dict[str, list[str]]

    def explanations(self) -> dict[str, list[str]]:
        """Return {reason why ops are missing: the ops}, for missing ops of a known package."""
        found: dict[str, list[str]] = {}
        for op in sorted({*self.unknown, *self.without_kernel}):
            _, reason = op_packages.kernels_of_package(op)
            if reason:
                found.setdefault(reason.rstrip("."), []).append(op)
        return found

    def packages(self) -> dict[str, list[str]]:
        """Return {op package: the ops whose kernels it brings}."""
        found: dict[str, list[str]] = {}
        for op in sorted(self.ops.keys() - self.unknown.keys()):
            owner = op_packages.owner_of_op(op)
            if owner:
                found.setdefault(owner, []).append(op)
        return found


def used_ops(graph_def: pb.GraphDef) -> set[str]:
    """Return the ops of the nodes of the graph and of the functions in its library."""
    functions = graph_def.library.function
    ops = {node.op for node in graph_def.node}
    ops.update(node.op for function in functions for node in function.node_def)
    return ops.difference(function.signature.name for function in functions)


def lacks_kernels(graph_def: pb.GraphDef, has_kernel: Callable[[str], bool]) -> bool:
    """Return whether `OpReport.without_kernel` lists an op; this is faster than the report."""
    return any(
        op_def_registry.find(op) is not None and not has_kernel(op) for op in used_ops(graph_def)
    )


def inspect_ops(meta_graph_def: pb.MetaGraphDef, has_kernel: Callable[[str], bool]) -> OpReport:
    """Return the report on the nodes of the graph and of the functions in the library.

    `has_kernel` must return whether the runtime has a kernel for an op.
    """
    graph_def = meta_graph_def.graph_def
    functions = {function.signature.name: function for function in graph_def.library.function}
    ops: dict[str, list[str]] = {}
    for node in graph_def.node:
        ops.setdefault(node.op, []).append(node.name)
    for name, function in functions.items():
        for node in function.node_def:
            ops.setdefault(node.op, []).append(f"{name}/{node.name}")
    for name in functions.keys() & ops.keys():
        del ops[name]  # The nodes call a function; `name` is not an op.
    unknown = {op: nodes for op, nodes in ops.items() if op_def_registry.find(op) is None}
    without_kernel = {
        op: nodes for op, nodes in ops.items() if op not in unknown and not has_kernel(op)
    }
    reached_by = {}
    if without_kernel:
        walk = Reachability(graph_def.node, functions)
        for entry, feeds, outputs in _entry_points(meta_graph_def):
            missing = walk.ops_reached(feeds, outputs) & without_kernel.keys()
            if missing:
                reached_by[entry] = sorted(missing)
    return OpReport(ops, unknown, without_kernel, reached_by)


def _entry_points(
    meta_graph_def: pb.MetaGraphDef,
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (description, fed tensors, fetched tensors or nodes) of each step that serving runs."""
    for key, signature in sorted(meta_graph_def.signature_def.items()):
        outputs = tensor_names(signature.outputs.values())
        if key not in _NOT_SERVED:
            yield f"signature {key}", tensor_names(signature.inputs.values()), outputs
        elif key == INIT_OP_SIGNATURE_KEY:
            yield "init op", [], outputs
    for collection in ("saved_model_main_op", "legacy_init_op"):
        if collection in meta_graph_def.collection_def:
            names = meta_graph_def.collection_def[collection].node_list.value
            yield "init op", [], list(names)
    if meta_graph_def.saver_def.restore_op_name:
        yield "restore op", [], [meta_graph_def.saver_def.restore_op_name]


class Reachability:
    """Finds the ops on which tensors depend, including the ops in called functions."""

    def __init__(self, nodes: Iterable[pb.NodeDef], functions: dict[str, pb.FunctionDef]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._functions = functions
        self._function_ops: dict[str, frozenset[str]] = {}

    def ops_reached(self, feeds: Iterable[str], outputs: Iterable[str]) -> set[str]:
        """Return the ops that a step may run if it feeds `feeds` and fetches `outputs`."""
        reached: set[str] = set()
        called: set[str] = set()
        self._walk(self._nodes, outputs, set(map(_endpoint, feeds)), reached, called)
        pending = list(called)
        while pending:
            function = self._functions.get(pending.pop())
            if function is None:
                continue
            inner: set[str] = set()
            self._walk_function(function, reached, inner)
            pending += inner - called
            called |= inner
        return reached

    def _walk_function(self, function: pb.FunctionDef, reached: set[str], called: set[str]) -> None:
        nodes = {node.name: node for node in function.node_def}
        asked = [*function.ret.values(), *function.control_ret.values()]
        # A stateful node of a function runs even if no result depends on it.
        asked += [node.name for node in function.node_def if _is_stateful(node.op)]
        self._walk(nodes, asked, set(), reached, called)

    def _walk(
        self,
        nodes: dict[str, pb.NodeDef],
        asked: Iterable[str],
        fed: set[str],
        reached: set[str],
        called: set[str],
    ) -> None:
        pending = [_node_name(name) for name in asked if _endpoint(name) not in fed]
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            node = nodes.get(name)
            if node is None or name in seen:  # None: an argument or a broken edge
                continue
            seen.add(name)
            if node.op in self._functions:
                called.add(node.op)
            else:
                reached.add(node.op)
            called.update(_called_functions(node))
            pending += [_node_name(each) for each in node.input if _endpoint(each) not in fed]


def _is_stateful(op: str) -> bool:
    op_def = op_def_registry.find(op)
    return op_def is not None and op_def.is_stateful


def _called_functions(node: pb.NodeDef) -> Iterator[str]:
    for attr in node.attr.values():
        if attr.HasField("func"):
            yield attr.func.name
        yield from (function.name for function in attr.list.func)


def _endpoint(name: str) -> str:
    """Return the name of a tensor with its output index: `x:0` for `x`."""
    return name if ":" in name or name.startswith("^") else f"{name}:0"


def _node_name(reference: str) -> str:
    return reference.removeprefix("^").partition(":")[0]
