"""Interim evaluator of cases until sessions run them: one node after the other, by recursion."""
import threading, types
from typing import Any
import protos as pb
from runtime.framework import attr_value, op_def_registry
from runtime.framework.cancellation import CancellationManager
from runtime.framework.kernel_registry import KernelRegistry, bind
from runtime.framework.op_kernel import Deferred, OpKernelContext
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.variable import Variable


class Node:
    def __init__(self, node_def: pb.NodeDef) -> None:
        self.name, self.op, self._def = node_def.name, node_def.op, node_def
        self.op_def = op_def_registry.look_up(node_def.op)
        self._defaults = {a.name: a.default_value for a in self.op_def.attr if a.HasField("default_value")}

    def attr(self, name: str) -> Any:
        if name in self._def.attr:
            return attr_value.from_proto(self._def.attr[name])
        return attr_value.from_proto(self._defaults[name])

    def input_is_ref(self) -> list[bool]:
        flags: list[bool] = []
        for a in self.op_def.input_arg:
            n = self.attr(a.number_attr) if a.number_attr else len(self.attr(a.type_list_attr)) if a.type_list_attr else 1
            flags += [a.is_ref] * n
        return flags

    def single(self) -> bool:
        outs = self.op_def.output_arg
        return len(outs) == 1 and not outs[0].number_attr and not outs[0].type_list_attr


class InterimSession:
    def __init__(self, graph: pb.GraphDef, registry: KernelRegistry) -> None:
        self.nodes = {n.name: n for n in graph.node}
        self.registry = registry
        self.session = types.SimpleNamespace(resources=ResourceManager(), kernel_state={}, kernel_state_lock=threading.RLock(), session_handle="interim")

    def run(self, feeds: dict, fetches: Any, targets: Any = ()) -> list:
        gate = types.SimpleNamespace(check_read=lambda path: None, check_write=lambda path: None)
        step = types.SimpleNamespace(step_id=1, session=self.session, cancellation=CancellationManager(), resources=ResourceManager(), files=gate)
        done: dict[str, Any] = {}
        feeds = {k if ":" in k else k + ":0": v for k, v in feeds.items()}

        def value(ref: str, want_ref: bool = False) -> Any:
            if ref.startswith("^"):
                evaluate(ref[1:])
                return None
            full = ref if ":" in ref else ref + ":0"
            if full in feeds:
                return feeds[full]
            name, index = full.rsplit(":", 1)
            out = evaluate(name)[int(index)]
            return out.read() if isinstance(out, Variable) and not want_ref else out

        def evaluate(name: str) -> Any:
            if name not in done:
                node = Node(self.nodes[name])
                for ref in [r for r in self.nodes[name].input if r.startswith("^")]:
                    value(ref)
                data = [r for r in self.nodes[name].input if not r.startswith("^")]
                args = [value(ref, is_ref) for ref, is_ref in zip(data, node.input_is_ref())]
                kernel = self.registry.find(node)
                if kernel.needs_context:
                    args.insert(0, OpKernelContext(node, step))
                result = bind(kernel, node)(*args)
                if isinstance(result, Deferred):
                    result = result.wait()
                done[name] = (result,) if node.single() else tuple(result or ())
            return done[name]

        fetched = [value(f) for f in fetches]
        for target in targets:
            evaluate(target.split(":")[0])
        return fetched
