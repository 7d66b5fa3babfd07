"""What the console shows of a version of a model, as JSON values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import protos as pb
from runtime.api import (
    DataType,
    DirectSession,
    OpReport,
    RuntimeSession,
    report_resources,
)
from server.access.caller import Caller
from server.console.example_features import Features, required_features, serialized_example
from server.console.example_values import example_value
from server.models.manager import ModelManager
from server.models.model_version import ModelVersion
from server.models.signature import CLASSIFY_METHOD, REGRESS_METHOD, Signature, TensorSpec

MAX_LISTED = 1000  # kinds of operations, clusters or functions
MAX_VARIABLES = 1 << 20
# A graph is built again to see what may be clustered; one of this size would take seconds.
MAX_GRAPH_BYTES = 1 << 28
_NOT_SHOWN = "__saved_model_"  # begins the names of signatures that only loading uses
_COLUMNS = "inputs"  # the key of the form of predict in which every tensor is whole
# JSON has no form for their values. TF: tensorflow_serving/util/json_tensor.cc
_NOT_IN_JSON = (DataType.COMPLEX64, DataType.COMPLEX128)
_CALLS = {CLASSIFY_METHOD: "classify", REGRESS_METHOD: "regress"}


def _engine() -> str:
    """Return the name and version of the engine; its package is loaded at the first use."""
    from runtime.api import engine_name

    name: str = engine_name()
    return name


def _engine_of(session: RuntimeSession) -> tuple[str, str]:
    """Return the engine and precision of a session's clusters, and why it is not what was chosen.

    The engine is "" if there is none. One that was named has been looked for at loading.
    """
    use = session.engine()
    if use is None:
        return _engine(), ""
    return f"{use.engine} in {use.precision}" if use.engine else "", use.reason


def describe_model(
    served: ModelVersion, manager: ModelManager, caller: Caller, unclustered: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return one version; `unclustered` is what `find_unclustered` has found."""
    name, session = served.name, served.session
    statuses = manager.known_statuses(name)
    graph_def = served.bundle.meta_graph_def.graph_def
    clusters, features = _clusters(session), required_features(graph_def)
    engine, engine_reason = _engine_of(session)
    base_path = next((each.base_path for each in manager.configs() if each.name == name), "")
    return {
        "name": name,
        "version": served.version,
        "state": next((s.state.value for s in statuses if s.version == served.version), "END"),
        "base_path": base_path if caller.shown_text(base_path) == base_path else None,
        "labels": manager.labels(name),
        "versions": [each.version for each in statuses],
        "signatures": [
            _signature(served, signature, features)
            for key, signature in served.signatures.items()
            if not key.startswith(_NOT_SHOWN)
        ],
        **_ops(served.bundle.report, graph_def),
        "engine": engine,
        "engine_reason": engine_reason,
        "clusters": clusters[:MAX_LISTED],
        "unclustered": unclustered[:MAX_LISTED],
        "memory": {
            "weights_bytes": _weights_bytes(session),
            "graph_bytes": graph_def.ByteSize(),
            "cluster_bytes": sum(each["bytes_held"] for each in clusters),
        },
        "batching": {
            key: {"mode": batches.mode} if batches.refused is None else {"refused": batches.refused}
            for key, batches in served.batches.items()
        },
    }


def _clusters(session: RuntimeSession) -> list[dict[str, Any]]:
    return [
        {"fetches": list(fetches), **dataclasses.asdict(cluster)}
        for fetches, clusters in session.clusters().items()
        for cluster in clusters
    ]


def _weights_bytes(session: RuntimeSession) -> int | None:
    """Return the size of the variables; None if the session is not in this process."""
    if not isinstance(session, DirectSession):
        return None
    report = report_resources(session.resources, MAX_VARIABLES)
    size: int = sum(each.bytes for each in report.variables)
    return size


# --- operations ---------------------------------------------------------------------------------


def _ops(report: OpReport, graph_def: pb.GraphDef) -> dict[str, Any]:
    functions = {function.signature.name for function in graph_def.library.function}
    reasons = {op: why for why, ops in report.explanations().items() for op in ops}
    kinds = sorted(report.ops.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    missing = sorted((report.unknown | report.without_kernel).items())
    return {
        "ops": [{"op": op, "nodes": len(nodes)} for op, nodes in kinds[:MAX_LISTED]],
        "missing_ops": [
            {
                "op": op,
                "nodes": len(nodes),
                "functions": sorted({node.partition("/")[0] for node in nodes} & functions)[
                    :MAX_LISTED
                ],
                "why": reasons.get(op, ""),
            }
            for op, nodes in missing[:MAX_LISTED]
        ],
    }


def find_unclustered(
    meta_graph_def: pb.MetaGraphDef, report: OpReport, *, is_off: bool
) -> list[dict[str, Any]]:
    """Return the operations that no cluster of a signature may have, with the reasons.

    What the graph alone tells: which nodes are worth compiling is measured. Takes up to some
    seconds. `nodes` is the most of one signature. `is_off` is whether the settings allow none.
    """
    for is_so, why in (
        (is_off, "the setting clusters is off"),
        (not _engine(), "no engine is there: the extra fast is not installed"),
        (
            meta_graph_def.graph_def.ByteSize() > MAX_GRAPH_BYTES,
            "the graph is too large to look at here; runstep show tells it",
        ),
        (bool(report.unknown), "the graph has unknown operations"),
    ):
        if is_so:
            nodes = {op: len(names) for op, names in report.ops.items()}
            return [{"op": op, "nodes": nodes[op], "why": why} for op in sorted(nodes)]
    from runtime.api import report_clusters

    most: dict[tuple[str, str], int] = {}
    for found in report_clusters(meta_graph_def):
        for key, count in found.reasons.items():
            most[key] = max(count, most.get(key, 0))
    ordered = sorted(most.items(), key=lambda entry: (-entry[1], entry[0]))
    return [{"op": op, "nodes": count, "why": why} for (op, why), count in ordered]


# --- signatures ---------------------------------------------------------------------------------


def _signature(served: ModelVersion, signature: Signature, features: Features) -> dict[str, Any]:
    return {
        "name": signature.name,
        "method": signature.method_name,
        "inputs": _tensors(signature.inputs),
        "outputs": _tensors(signature.outputs),
        "example": _example(served, signature, features),
    }


def _tensors(specs: Mapping[str, TensorSpec]) -> list[dict[str, Any]]:
    return [
        {
            "alias": alias,
            "dtype": spec.data_type.name_on_wire,
            "shape": None
            if spec.shape is None
            else [None if each < 0 else each for each in spec.shape],
            "tensor": spec.name,
        }
        for alias, spec in specs.items()
    ]


def _example(
    served: ModelVersion, signature: Signature, features: Features
) -> dict[str, Any] | None:
    """Return a request that can be sent as it is; None if JSON has none, or only a long one."""
    path = f"v1/models/{quote(served.name, safe='')}/versions/{served.version}"
    body: dict[str, Any] = {"signature_name": signature.name}
    call = _CALLS.get(signature.method_name)
    if call is not None:
        example = {name: each[0] if len(each) == 1 else each for name, each in features.items()}
        return {"path": f"{path}:{call}", "body": body | {"examples": [example]}}
    if any(spec.data_type in _NOT_IN_JSON for spec in signature.outputs.values()):
        return None
    values = {}
    for alias, spec in signature.inputs.items():
        value = example_value(spec.data_type, spec.shape)
        if value is None or not spec.name or spec.data_type in _NOT_IN_JSON:
            return None
        if features and value == [""] and len(signature.inputs) == 1:
            value = [serialized_example(features)]
        values[alias] = value
    return {"path": f"{path}:predict", "body": body | {_COLUMNS: values}}
