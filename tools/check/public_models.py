"""Run public models in TensorFlow and in Runstep on the same inputs, and compare the outputs.

    PYTHON tools/check/public_models.py FOLDER… [--rows FILE] [--match TEXT…]

Requires an environment with TensorFlow and this project's dependencies. Each FOLDER is searched for
`saved_model.pb`, frozen graphs (`frozen.pb`) and MetaGraphDefs (`*.meta`); the models are not part
of this repository. Inputs are random and fit the signature: pixels and ids are 0 or 1, a batch has
two rows, a string is a word or a serialized tf.Example with the features that the graph parses.

* SavedModel: both load it and run every signature.
* Frozen graph: both import it, feed its placeholders and fetch the outputs without a consumer.
* MetaGraphDef: both create it. TensorFlow initialises and saves the variables, Runstep restores
  that checkpoint with the graph's restore op, then both fetch every trainable variable.

Outputs that differ are left out, and counted, if TensorFlow does not determine their value: random
numbers, and variables that the same step reads and writes in no fixed order (the value of a
streaming metric fetched with its update).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_parsing_ops  # noqa: F401 - registers what graphs parse with

import protos as pb
from runtime.api import OpError, SessionOptions, load_saved_model, new_session
from tests.saved_model_corpus import relative_difference
from tests.signature_tensors import tensor_names

v1 = tf.compat.v1
ROWS = 2
BAR = 1e-4
IMPORT_ERRORS = (ValueError, KeyError, TypeError, OSError, tf.errors.OpError, RuntimeError)


class Inputs:
    """Random values for the placeholders of a graph, which both runtimes are fed."""

    def __init__(self, graph: tf.Graph) -> None:
        self._random = np.random.default_rng(1)
        self._graph = graph

    def value(self, name: str) -> Any:
        tensor = self._graph.get_tensor_by_name(name)
        shape = tensor.shape.as_list() if tensor.shape.rank is not None else [ROWS]
        sizes = [ROWS if size is None else size for size in shape]
        if tensor.dtype == tf.string:
            text = self._example(tensor)
            return np.full(sizes, text, object) if sizes else np.array(text, object)
        if tensor.dtype == tf.bool:
            return np.zeros(sizes, bool)
        kind = tensor.dtype.as_numpy_dtype
        if tensor.dtype.is_integer:
            return self._random.integers(0, 2, sizes).astype(kind)
        return self._random.uniform(0, 1, sizes).astype(kind)

    def _example(self, tensor: tf.Tensor) -> bytes:
        """Return a tf.Example with the dense features that the tensor's consumers parse, or a word.

        The word is for a tensor that no ParseExample op consumes.
        """
        example = tf.train.Example()
        parsers = [op for op in tensor.consumers() if op.type in ("ParseExample", "ParseExampleV2")]
        for op in parsers:
            keys, types, shapes = self._dense_features(op)
            for key, kind, shape in zip(keys, types, shapes, strict=True):
                feature = example.features.feature[key]
                count = int(np.prod([size or 1 for size in shape.as_list()]))
                if kind == tf.float32:
                    feature.float_list.value.extend(self._random.uniform(0, 1, count))
                elif kind == tf.int64:
                    feature.int64_list.value.extend(self._random.integers(0, 3, count))
                else:
                    feature.bytes_list.value.extend([b"word"] * count)
        return example.SerializeToString() if parsers else b"word"

    def _dense_features(self, op: tf.Operation) -> tuple[list[str], list[Any], list[Any]]:
        types, shapes = op.get_attr("Tdense"), op.get_attr("dense_shapes")
        shapes = [tf.TensorShape(shape) for shape in shapes]
        if op.type == "ParseExample":
            keys = op.inputs[2 + op.get_attr("Nsparse") :][: len(types)]
            return [tf.get_static_value(key).item().decode() for key in keys], types, shapes
        keys = tf.get_static_value(op.inputs[3]).ravel()
        return [key.decode() for key in keys], types, shapes


def as_tensor(value: Any) -> np.ndarray:
    """Return the array; fixed-width byte strings become objects."""
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind == "S" else array


def compare(ours: list[Any], theirs: list[Any]) -> float:
    """Return the largest relative difference; equal NaN and infinities count as equal."""
    worst = 0.0
    for got, want in zip(map(as_tensor, ours), map(as_tensor, theirs), strict=True):
        if want.dtype.kind == "f" and got.shape == want.shape:
            same = ~np.isfinite(want) & ((want == got) | np.isnan(want) & np.isnan(got))
            got, want = (np.where(same, each.dtype.type(0), each) for each in (got, want))
        worst = max(worst, relative_difference(got, want))
    return worst


def check_saved_model(path: pathlib.Path) -> dict[str, Any]:
    folder = str(path.parent)
    (tags,) = {tuple(graph.meta_info_def.tags) for graph in saved_model(path).meta_graphs[:1]}
    row: dict[str, Any] = {"runs": 0, "difference": 0.0, "refused": 0}
    with tf.Graph().as_default() as graph, v1.Session() as session:
        loaded = v1.saved_model.load(session, list(tags), folder)
        steps = signature_steps(graph, loaded)
        try:
            bundle = load_saved_model(SessionOptions(), None, folder, set(tags))
        except OpError as error:
            row |= refusals(session, steps, error)
            return row
        row |= counts(bundle.meta_graph_def.graph_def)
        if not steps:
            row["remark"] = "no signature: loaded only"
        for key, (feeds, fetches) in steps.items():
            run_both(row, key, session, bundle.session, feeds, fetches)
    return row


def signature_steps(graph: tf.Graph, loaded: Any) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Return {signature: (feeds, fetches)}, ordered by name."""
    steps = {}
    for key, signature in sorted(loaded.signature_def.items()):
        if not key.startswith("__"):
            inputs = Inputs(graph)
            names = sorted(tensor_names(signature.inputs).values())
            feeds = {name: inputs.value(name) for name in names}
            fetches = [name for name in tensor_names(signature.outputs).values() if name]
            steps[key] = feeds, fetches
    return steps


def refusals(session: Any, steps: dict[str, Any], ours: OpError) -> dict[str, Any]:
    """Return the row of a model that Runstep refuses to load and that no step of TensorFlow runs.

    Raises:
        OpError: `ours`, if TensorFlow runs one of the steps.
    """
    refusal = ""
    for feeds, fetches in steps.values():
        try:
            session.run(fetches, feeds)
        except tf.errors.OpError as error:
            refusal = " ".join(line for line in error.message.splitlines() if "OpKernel" in line)
            refusal = refusal.partition(" used by")[0] or error.message[:120]
        else:
            raise ours
    return {"refused": len(steps), "theirs": refusal}


def check_frozen_graph(path: pathlib.Path) -> dict[str, Any]:
    data = path.read_bytes()
    row: dict[str, Any] = {"runs": 0, "difference": 0.0, "refused": 0}
    with tf.Graph().as_default() as graph, v1.Session() as session:
        tf.graph_util.import_graph_def(v1.GraphDef.FromString(data), name="")
        ours = new_session(SessionOptions())
        ours.create(pb.GraphDef.FromString(data))
        row |= counts(pb.GraphDef.FromString(data))
        inputs = Inputs(graph)
        operations = graph.get_operations()
        placed = [op.outputs[0].name for op in operations if op.type == "Placeholder"]
        fetches = [
            output.name
            for op in operations
            for output in op.outputs
            if not output.consumers() and op.type not in ("Const", "Placeholder")
        ]
        feeds = {name: inputs.value(name) for name in placed}
        run_both(row, "graph", session, ours, feeds, fetches)
    return row


def check_meta_graph(path: pathlib.Path) -> dict[str, Any]:
    data = path.read_bytes()
    meta_graph = pb.MetaGraphDef.FromString(data)
    row: dict[str, Any] = {"runs": 0, "difference": 0.0, "refused": 0}
    row |= counts(meta_graph.graph_def)
    with (
        tf.Graph().as_default() as graph,
        v1.Session() as session,
        tempfile.TemporaryDirectory() as folder,
    ):
        saver = v1.train.import_meta_graph(v1.MetaGraphDef.FromString(data), clear_devices=True)
        ours = new_session(SessionOptions())
        ours.create(meta_graph.graph_def)
        session.run(v1.global_variables_initializer())
        saved = meta_graph.saver_def
        if saver is None or not saved.restore_op_name:
            row["remark"] = "no restore op: created only"
            return row
        prefix = saver.save(session, f"{folder}/model", write_meta_graph=False)
        ours.run(
            {saved.filename_tensor_name: np.array(prefix.encode(), object)},
            [],
            [saved.restore_op_name],
        )
        fetches = [variable.value().name for variable in v1.trainable_variables()]
        known = {node.name for node in meta_graph.graph_def.node}
        fetches = [name for name in fetches if name.partition(":")[0] in known]
        run_both(row, "variables", session, ours, {}, fetches)
        train_both(row, graph, session, ours)
    return row


def train_both(row: dict[str, Any], graph: tf.Graph, session: Any, ours: Any) -> None:
    """Run the first op of the collection `train_op` once in both, then compare the variables."""
    operations = [op for op in graph.get_collection("train_op") if isinstance(op, tf.Operation)]
    if not operations:
        return
    inputs = Inputs(graph)
    feeds = {
        op.outputs[0].name: inputs.value(op.outputs[0].name)
        for op in graph.get_operations()
        if op.type == "Placeholder"
    }
    row["trains"] = ""
    try:
        session.run(operations[0], feeds)
    except tf.errors.OpError as error:
        row["trains"] = f"TensorFlow: {error.message.splitlines()[0][:80]}"
        return
    ours.run(feeds, [], [operations[0].name])
    fetches = [variable.value().name for variable in v1.trainable_variables()]
    run_both(row, "after a step", session, ours, {}, fetches)


def run_both(
    row: dict[str, Any],
    what: str,
    theirs: Any,
    ours: Any,
    feeds: dict[str, Any],
    fetches: list[str],
) -> None:
    try:
        want = theirs.run(fetches, feeds)
    except (tf.errors.OpError, ValueError) as error:
        try:
            ours.run(feeds, fetches)
        except OpError:
            row["refused"] += 1
            return
        row.setdefault("failed", f"{what}: only TensorFlow refuses: {str(error)[:120]}")
        return
    try:
        got = ours.run(feeds, fetches)
    except OpError as error:
        row.setdefault("failed", f"{what}: {type(error).__name__}: {error.message[:160]}")
        return
    each = [compare([ours], [theirs]) for ours, theirs in zip(got, want, strict=True)]
    if max(each, default=0.0) > BAR:
        free = undetermined(theirs, feeds, fetches, want)
        kept = [d for d, is_free in zip(each, free, strict=True) if d <= BAR or not is_free]
        row["undetermined"] = row.get("undetermined", 0) + len(each) - len(kept)
        each = kept
    if each or not fetches:
        row["runs"] += 1
        row["difference"] = max(row["difference"], *each, 0.0)


def undetermined(
    session: Any, feeds: dict[str, Any], fetches: list[str], values: list[Any]
) -> list[bool]:
    """Return for each fetch whether TensorFlow does not determine its value.

    It does not if a second run gives another value, or if the step reads a variable unordered.
    """
    again = session.run(fetches, feeds)
    unordered = unordered_reads(session.graph, fetches)
    return [
        name in unordered or compare([second], [first]) > BAR
        for name, first, second in zip(fetches, values, again, strict=True)
    ]


def unordered_reads(graph: tf.Graph, fetches: list[str]) -> set[str]:
    """Return the fetches that depend on a variable's read not ordered with a write of that step."""
    before = {name: ancestors(graph.get_tensor_by_name(name).op) for name in fetches}
    writes: dict[tf.Operation, set[tf.Operation]] = {}
    for op in set().union(*before.values()):
        if op.type.startswith(("Assign", "ResourceApply", "ResourceScatter")):
            writes.setdefault(op.inputs[0].op, set()).add(op)

    def unordered(read: tf.Operation) -> bool:
        earlier = ancestors(read)
        others = writes.get(read.inputs[0].op, set()) - earlier
        return any(read not in ancestors(write) for write in others)

    reads = {op for ops in before.values() for op in ops if op.type == "ReadVariableOp"}
    loose = {read for read in reads if unordered(read)}
    return {name for name, ops in before.items() if ops & loose}


def ancestors(op: tf.Operation) -> set[tf.Operation]:
    """Return the operation and all operations that must run before it."""
    seen, waiting = {op}, [op]
    while waiting:
        last = waiting.pop()
        new = {tensor.op for tensor in last.inputs} | set(last.control_inputs)
        waiting += new - seen
        seen |= new
    return seen


def saved_model(path: pathlib.Path) -> pb.SavedModel:
    return pb.SavedModel.FromString(path.read_bytes())


def counts(graph_def: pb.GraphDef) -> dict[str, int]:
    """Return the number of nodes, including those of functions, and of distinct ops."""
    nodes = [*graph_def.node]
    for function in graph_def.library.function:
        nodes += function.node_def
    functions = {function.signature.name for function in graph_def.library.function}
    return {"nodes": len(nodes), "ops": len({node.op for node in nodes} - functions)}


KINDS = {
    "saved_model.pb": check_saved_model,
    "frozen.pb": check_frozen_graph,
    "*.meta": check_meta_graph,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--rows", type=pathlib.Path, help="put the rows into this JSON table")
    parser.add_argument("--match", nargs="+", help="only models with one of these in their name")
    options = parser.parse_args()
    rows = Rows(options.rows)
    for root in options.folders:
        for pattern, check in KINDS.items():
            for path in sorted(root.rglob(pattern)):
                name = path if pattern == "*.meta" else path.parent
                model = str(name.relative_to(root.parent))
                if options.match and not any(text in model for text in options.match):
                    continue
                row = {"model": model, "kind": pattern.strip("*.")}
                try:
                    row |= check(path)
                except OpError as error:
                    row["failed"] = f"{type(error).__name__}: {error.message[:200]}"
                except IMPORT_ERRORS as error:
                    row["theirs"] = f"{type(error).__name__}: {str(error)[:120]}"
                print(row, flush=True)
                rows.put(row)
    return 0


class Rows:
    """A table kept in a JSON file; a model's row replaces its earlier row."""

    def __init__(self, path: pathlib.Path | None) -> None:
        self._path = path
        known = json.loads(path.read_text()) if path is not None and path.exists() else []
        self._rows = {row["model"]: row for row in known}

    def put(self, row: dict[str, Any]) -> None:
        self._rows[row["model"]] = row
        if self._path is not None:
            self._path.write_text(json.dumps([*self._rows.values()], indent=1))


if __name__ == "__main__":
    raise SystemExit(main())
