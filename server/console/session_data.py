"""What the console shows of a session, as JSON values."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

import protos as pb
from runtime.api import (
    DirectSession,
    dtypes,
    report_resources,
    shape_from_proto,
    variable_histogram,
)
from server.access.caller import Caller
from server.codec.session.short_run import StepNames
from server.console.example_values import example_value
from server.models.signature import Signature, TensorSpec
from server.rest.sessions import describe_session
from server.sessions.clock import rfc3339
from server.sessions.open_session import EndedStep, FirstNames, OpenSession
from server.steps.step_request import StepRequest

MAX_LISTED = 1000  # functions, placeholders, or resources of a kind
MAX_OPS = 200  # kinds of operations of one function
HISTOGRAM_BINS = 40
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
_NOT_SHOWN = "__saved_model_"  # begins the names of signatures that only loading uses


def listed_session(opened: OpenSession, caller: Caller) -> dict[str, Any]:
    """Return an entry of the list; `masked` is whether its id can't be used to open it."""
    shown = caller.shown_id(opened.id, opened.owner)
    return describe_session(opened, shown) | {
        "owner": opened.owner,
        "masked": shown != opened.id,
    }


def one_session(opened: OpenSession, default_pool: str) -> dict[str, Any]:
    """Return one session with its steps; `default_pool` is that of steps that ran at once."""
    return describe_session(opened, opened.id) | {
        "owner": opened.owner,
        "version": (opened.model or {}).get("version"),
        "lease_seconds": opened.lease.seconds,
        "running": [_running(each, opened) for each in opened.running_steps],
        "last_steps": [_ended(each, default_pool) for each in opened.last_steps],
    }


def _running(request: StepRequest, opened: OpenSession) -> dict[str, Any]:
    seconds = max(0.0, time.monotonic() - request.received_at)
    return {
        "request_id": request.request_id,
        "what": _what(request.feeds, request.fetches, request.targets),
        "pool": request.pool,
        "started_at": rfc3339(opened.clock.wall() - seconds),
        "seconds": seconds,
    }


def _ended(step: EndedStep, default_pool: str) -> dict[str, Any]:
    return {
        "request_id": step.request_id,
        "what": _named(step.names),
        "at": rfc3339(step.at),
        "pool": step.pool or default_pool,
        "wait_seconds": step.wait_seconds,
        "run_seconds": step.run_seconds,
        "code": step.code.name,
    }


def _named(names: StepNames | FirstNames) -> str:
    if isinstance(names, StepNames):
        return _what(names.feeds, names.fetches, names.targets)
    return _text(
        (names.feed, names.feeds), (names.fetch, names.fetches), (names.target, names.targets)
    )


def _what(feeds: Iterable[str], fetches: Iterable[str], targets: Iterable[str]) -> str:
    lists = list(feeds), list(fetches), list(targets)
    return _text(*((names[0][:120] if names else "", len(names)) for names in lists))


def _text(feeds: tuple[str, int], fetches: tuple[str, int], targets: tuple[str, int]) -> str:
    """Return "x:0 and 2 more → y:0, run init"."""
    fed, fetched, run = (
        f"{name} and {number - 1} more" if number > 1 else name
        for name, number in (feeds, fetches, targets)
    )
    wanted = ", ".join(each for each in (fetched, run and f"run {run}") if each)
    return f"{fed} → {wanted}" if fed else wanted


# --- graph --------------------------------------------------------------------------------------


def graph_json(graph_def: pb.GraphDef, version: int) -> bytes:
    """Return the summary of a graph: its operations, by functions, and its placeholders."""
    functions = graph_def.library.function
    placeholders = [node for node in graph_def.node if node.op in _PLACEHOLDERS]
    return orjson.dumps({
        "graph_version": version,
        "nodes": len(graph_def.node),
        "ops": _ops(graph_def.node),
        "functions": [
            {
                "name": function.signature.name,
                "nodes": len(function.node_def),
                "ops": _ops(function.node_def),
            }
            for function in functions[:MAX_LISTED]
        ],
        "placeholders": [_placeholder(node) for node in placeholders[:MAX_LISTED]],
        "truncated": max(len(functions), len(placeholders)) > MAX_LISTED,
    })  # fmt: skip


def _ops(nodes: Iterable[pb.NodeDef]) -> list[dict[str, Any]]:
    counts = collections.Counter(node.op for node in nodes)
    return [{"op": op, "count": count} for op, count in counts.most_common(MAX_OPS)]


def _placeholder(node: pb.NodeDef) -> dict[str, Any]:
    data_type, _ = dtypes.from_number(node.attr["dtype"].type)
    shape = shape_from_proto(node.attr["shape"].shape) if "shape" in node.attr else None
    return {"name": f"{node.name}:0", "dtype": data_type.name_on_wire, "shape": shape}


# --- signatures and resources -------------------------------------------------------------------


def session_signatures(signatures: Mapping[str, Signature]) -> dict[str, Any]:
    """Return the signatures of a session's model, each input with a value that fits it."""
    return {
        "signatures": [
            {
                "name": name,
                "method": signature.method_name,
                "inputs": [
                    tensor(alias, spec) | {"example": example_value(spec.data_type, spec.shape)}
                    for alias, spec in signature.inputs.items()
                ],
                "outputs": [tensor(alias, spec) for alias, spec in signature.outputs.items()],
            }
            for name, signature in signatures.items()
            if not name.startswith(_NOT_SHOWN)
        ]
    }


def tensor(alias: str, spec: TensorSpec) -> dict[str, Any]:
    """Return an input or output of a signature; a dimension that is not known is −1."""
    return {
        "name": alias,
        "tensor": spec.name,
        "dtype": spec.data_type.name_on_wire,
        "shape": spec.shape,
    }


def resources_json(session: DirectSession) -> bytes:
    """Return the resources that a session holds."""
    report = report_resources(session.resources, MAX_LISTED)
    return orjson.dumps({
        "variables": [dataclasses.asdict(each) for each in report.variables],
        "queues": [dataclasses.asdict(each) for each in report.queues],
        "others": [dataclasses.asdict(each) for each in report.others],
        "truncated": report.is_cut,
    })  # fmt: skip


def histogram_json(session: DirectSession, variable: str) -> bytes:
    """Return the histogram of a variable; must run on a thread of a pool."""
    found = variable_histogram(session.resources, variable, HISTOGRAM_BINS)
    return orjson.dumps({
        "name": variable,
        "count": found.count,
        "examined": found.examined,
        "non_finite": found.non_finite,
        "min": found.minimum,
        "max": found.maximum,
        "mean": found.mean,
        "std": found.std,
        "edges": found.edges,
        "counts": found.counts,
    })  # fmt: skip
