"""`runstep show DIR`: describe a SavedModel, and say whether it can be served."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import protos as pb
from runtime.api import (
    OpReport,
    describe_openvino,
    dtypes,
    engine_name,
    inspect_saved_model,
    op_package_summaries,
    report_clusters,
    tensor_names,
)
from server.commands.model_folder import find_saved_model, read_tags
from server.commands.progress import Progress

EXIT_NOT_SERVED = 1
# TF: tensorflow/core/ops/{resource_variable_ops,state_ops}.cc
_VARIABLE_OPS = {"VarHandleOp", "Variable", "VariableV2"}
_SHARD = re.compile(r"variables\.data-\d{5}-of-(\d{5})")
_DEFAULT_SIGNATURE = "serving_default"  # TF: saved_model/signature_constants.h
_MAX_NODES = 3  # number of an op's nodes whose names are printed; the others are counted


def show(options: argparse.Namespace) -> int:
    """Print the description, and return 0 if the model can be served."""
    folder = find_saved_model(options.directory)
    with Progress(f"Reading {folder}"):
        meta_graph_def, report = inspect_saved_model(folder, read_tags(options.tags))
    missing = missing_variables(folder, meta_graph_def)
    for line in describe(folder, meta_graph_def, report, missing):
        print(line)
    if not report.unknown:
        for line in _describe_clusters(meta_graph_def):
            print(line)
    return EXIT_NOT_SERVED if report.unknown or report.reached_by or missing else 0


def missing_variables(folder: str, meta_graph_def: pb.MetaGraphDef) -> str:
    """Return what is missing of the variables that the graph restores, or "" if nothing is.

    TF: saved_model/constants.h; tensorflow/core/util/tensor_bundle/naming.cc
    """
    if not meta_graph_def.saver_def.restore_op_name:
        return ""
    ops = {node.op for node in meta_graph_def.graph_def.node}
    if ops.isdisjoint(_VARIABLE_OPS):  # a saver without variables restores nothing
        return ""
    variables = Path(folder) / "variables"
    if not (variables / "variables.index").is_file():
        return f"{variables}/variables.index"
    shards = [match for path in variables.iterdir() if (match := _SHARD.fullmatch(path.name))]
    expected = max((int(match[1]) for match in shards), default=1)
    if len(shards) < expected:
        return f"{expected - len(shards)} of the {expected} files {variables}/variables.data-…"
    return ""


def describe(
    folder: str, meta_graph_def: pb.MetaGraphDef, report: OpReport, missing: str = ""
) -> Iterator[str]:
    """Yield the lines of the description; `missing` is what `missing_variables` returns."""
    info = meta_graph_def.meta_info_def
    yield f"SavedModel {folder}"
    yield f"tags: {', '.join(sorted(info.tags)) or 'none'}"
    # Not "written by": other exporters, this one too, set it because TensorFlow's loader checks it.
    yield f"TensorFlow version: {info.tensorflow_version or 'not said'}"
    if missing:
        yield f"variables: {missing} is missing"
    # The others are for the loader: init op, train op.
    signatures = [
        name
        for name in sorted(meta_graph_def.signature_def)
        if not name.startswith("__saved_model")
    ]
    if not signatures:
        yield "signatures: none, so that only sessions can run it, by the names of tensors"
    elif _DEFAULT_SIGNATURE not in signatures:
        yield f"signatures: no {_DEFAULT_SIGNATURE}, so that every prediction must name one"
    for name in signatures:
        yield ""
        yield from _describe_signature(name, meta_graph_def.signature_def[name])
    nodes = sum(len(names) for names in report.ops.values())
    yield ""
    yield f"ops: {len(report.ops)} kinds, {nodes} nodes"
    yield from _describe_ops(report.ops, _count)
    if report.without_kernel:
        yield ""
        yield "ops without a kernel (a step that reaches one fails):"
        yield from _describe_ops(report.without_kernel, _name_some)
    if report.unknown:
        yield ""
        yield "unknown ops (the graph cannot be created):"
        yield from _describe_ops(report.unknown, _name_some)
    explanations = report.explanations()
    if explanations:
        yield ""
        for explanation, ops in explanations.items():
            yield f"{', '.join(ops)}: {explanation}."
    yield ""
    yield from _describe_packages(report)
    yield ""
    yield from _verdict(report, missing)


def _describe_clusters(meta_graph_def: pb.MetaGraphDef) -> Iterator[str]:
    """Yield what an engine can compute of each signature, as far as the graph alone tells."""
    yield ""
    yield f"clusters ({engine_name() or 'no engine: the extra fast is not installed'}):"
    for found in report_clusters(meta_graph_def):
        sizes = ", ".join(map(str, found.nodes)) or "none"
        yield f"  {found.signature}: nodes in clusters {sizes}; outside {_outside(found.outside)}"
    openvino = describe_openvino()
    if openvino:
        yield f"  engine: openvino would be {openvino}"


def _describe_packages(report: OpReport) -> Iterator[str]:
    """Yield the op packages that are installed, and the model's ops that each brings."""
    used = report.packages()
    yield "op packages (docs/op_packages.md):"
    for package in op_package_summaries():
        owner = f"{package.distribution} {package.version}".strip() or "no distribution"
        yield f"  {package.name} ({owner}): {package.fault or f'{len(package.ops)} ops'}"
        if used.get(package.name):
            yield f"    of this model: {', '.join(used[package.name])}"


def _outside(ops: Mapping[str, int]) -> str:
    return ", ".join(f"{op} {count}" for op, count in ops.items()) or "none"


def _verdict(report: OpReport, missing: str) -> Iterator[str]:
    if missing:
        yield "This model cannot be served: its variables are incomplete."
    elif report.unknown:
        yield "This model cannot be loaded: it has unknown ops."
    elif report.reached_by:
        yield "This model cannot be served:"
        for entry, ops in report.reached_by.items():
            yield f"  {entry} reaches {', '.join(ops)}"
    else:
        yield "This model can be served."


def _describe_signature(name: str, signature: pb.SignatureDef) -> Iterator[str]:
    yield f"signature {name} ({signature.method_name or 'no method'})"
    for title, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        yield f"  {title}:"
        for alias in sorted(tensors):
            yield f"    {alias}: {describe_tensor(tensors[alias])}"


def describe_tensor(info: pb.TensorInfo) -> str:
    """Return the type, shape and name of an input or output."""
    encoding = info.WhichOneof("encoding")
    if encoding != "name":  # a composite tensor, for example sparse or ragged
        return f"{encoding or 'no tensor'}  {', '.join(tensor_names([info]))}".rstrip()
    shape = "unknown rank"
    if not info.tensor_shape.unknown_rank:
        sizes = ("?" if dim.size < 0 else str(dim.size) for dim in info.tensor_shape.dim)
        shape = f"[{', '.join(sizes)}]"
    data_type, is_ref = dtypes.from_number(info.dtype)
    return f"{data_type.name_on_wire}{'_ref' if is_ref else ''} {shape}  {info.name}"


def _describe_ops(
    ops: Mapping[str, list[str]], describe_nodes: Callable[[list[str]], str]
) -> Iterator[str]:
    width = max(map(len, ops), default=0)
    for op in sorted(ops):
        yield f"  {op:<{width}}  {describe_nodes(ops[op])}"


def _count(nodes: list[str]) -> str:
    return str(len(nodes))


def _name_some(nodes: list[str]) -> str:
    rest = len(nodes) - _MAX_NODES
    return ", ".join(nodes[:_MAX_NODES]) + (f" and {rest} more" if rest > 0 else "")
