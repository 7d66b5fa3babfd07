"""Export recurrent layers of Keras, each with TensorFlow's answer, as fixtures of the tests.

Run in an environment that has tensorflow and keras (and tf_keras, for the layers of Keras 2), from
the root of the repository:

    python tools/export/recurrent_layers.py [name …]      # all layers, or those named

`tests/fixtures/recurrent_layers/<name>.npz` has the serving graph without anything that it doesn't
need (`graph`, a serialised GraphDef, whose node `initialize` assigns the variables), and
`in/<tensor>` and `out/<tensor>` by tensor name. A file that exists is left as it is.
"""

import importlib.util
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
ROOT = pathlib.Path(__file__).parents[2]

import keras
import numpy as np
import tensorflow as tf

FIXTURES = ROOT / "tests" / "fixtures" / "recurrent_layers"
STEPS, WIDTH, UNITS, BATCH = 7, 3, 5, 2
v1 = tf.compat.v1
Make = Callable[[Any], Any]  # keras or tf_keras → model


def layered(*make: Callable[[Any], Any], steps: int | None = STEPS) -> Make:
    """Return what makes a model of layers, one after the other."""

    def model(api: Any) -> Any:
        inputs = outputs = api.Input((steps, WIDTH), name="x")
        for each in make:
            outputs = each(api.layers)(outputs)
        return api.Model(inputs, outputs)

    return model


def layer(kind: str, units: int = UNITS, steps: int | None = STEPS, **options: Any) -> Make:
    """Return what makes a model of one layer."""
    return layered(lambda layers: getattr(layers, kind)(units, **options), steps=steps)


def bidirectional(kind: str, **options: Any) -> Make:
    return layered(
        lambda layers: layers.Bidirectional(getattr(layers, kind)(UNITS, **options)), steps=None
    )


def stacked(api: Any) -> Any:
    layers = api.layers
    return layered(
        lambda _: layers.LSTM(UNITS, return_sequences=True),
        lambda _: layers.GRU(4, return_sequences=True),
        lambda _: layers.SimpleRNN(6),
    )(api)


def cells(api: Any) -> Any:
    layers = api.layers
    kinds = [layers.LSTMCell(UNITS), layers.GRUCell(4), layers.SimpleRNNCell(6)]
    return layered(lambda _: layers.RNN(kinds, return_sequences=True))(api)


def masked(api: Any) -> Any:
    layers = api.layers
    return layered(lambda _: layers.Masking(), lambda _: layers.LSTM(UNITS))(api)


def encoder_decoder(api: Any) -> Any:
    """An LSTM whose initial states are the final ones of another."""
    layers = api.layers
    x, z = api.Input((STEPS, WIDTH), name="x"), api.Input((4, WIDTH), name="z")
    _, *states = layers.LSTM(UNITS, return_state=True)(x)
    return api.Model([x, z], layers.LSTM(UNITS, return_sequences=True)(z, initial_state=states))


ALL_STEPS = {"return_sequences": True}
STATES = {"return_sequences": True, "return_state": True}
DROPOUT = {"dropout": 0.2, "recurrent_dropout": 0.2}
HARD = {"recurrent_activation": "hard_sigmoid"}
MODELS: dict[str, Make] = {
    "lstm": layer("LSTM"),
    "lstm_states": layer("LSTM", **STATES),
    "lstm_any_steps": layer("LSTM", steps=None, **STATES),
    "lstm_backwards": layer("LSTM", go_backwards=True, **ALL_STEPS),
    "lstm_bidirectional": bidirectional("LSTM", **ALL_STEPS),
    "lstm_without_bias": layer("LSTM", use_bias=False),
    "lstm_without_forget_bias": layer("LSTM", unit_forget_bias=False),
    "lstm_hard": layer("LSTM", **HARD, **ALL_STEPS),
    "lstm_relu": layer("LSTM", activation="relu"),
    "lstm_elu_softsign": layer("LSTM", activation="elu", recurrent_activation="softsign"),
    "lstm_linear": layer("LSTM", activation="linear"),
    "lstm_dropout": layer("LSTM", **DROPOUT),
    "lstm_masked": masked,
    "lstm_encoder_decoder": encoder_decoder,
    "gru": layer("GRU"),
    "gru_states": layer("GRU", **STATES),
    "gru_reset_before": layer("GRU", reset_after=False, **ALL_STEPS),
    "gru_reset_before_without_bias": layer("GRU", reset_after=False, use_bias=False),
    "gru_reset_before_dropout": layer("GRU", reset_after=False, **DROPOUT),
    "gru_without_bias": layer("GRU", use_bias=False),
    "gru_hard": layer("GRU", **HARD),
    "gru_dropout": layer("GRU", **DROPOUT),
    "gru_bidirectional": bidirectional("GRU"),
    "simple": layer("SimpleRNN"),
    "simple_relu_states": layer("SimpleRNN", activation="relu", **STATES),
    "simple_hard_without_bias": layer("SimpleRNN", activation="hard_sigmoid", use_bias=False),
    "stacked": stacked,
    "cells": cells,
}
# Layers of Keras 2, whose graphs differ from those of Keras 3.
KERAS_2 = (
    "lstm_any_steps", "lstm_hard", "lstm_dropout", "gru_states", "gru_reset_before", "gru_dropout",
    "simple", "cells",
)  # fmt: skip


def write(path: pathlib.Path, model: Any) -> None:
    """Write the fixture of a model whose weights are random."""
    rng = np.random.default_rng(5)
    model.set_weights(
        [
            (rng.standard_normal(each.shape) / 2).astype(each.dtype)
            if each.dtype.kind == "f"
            else each
            for each in model.get_weights()
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder)
        with tf.Graph().as_default(), v1.Session() as session:
            loaded = v1.saved_model.load(session, ["serve"], folder)
            signature = loaded.signature_def["serving_default"]
            feeds = {info.name: _input(info, rng) for info in signature.inputs.values()}
            fetches = [info.name for info in signature.outputs.values()]
            answers = session.run(fetches, feeds)
            graph = _stripped(session.graph.as_graph_def(), fetches)
            _add_initializer(graph, session)
    arrays = {f"in/{name}": array for name, array in feeds.items()}
    arrays |= {f"out/{name}": array for name, array in zip(fetches, answers, strict=True)}
    data = np.frombuffer(graph.SerializeToString(deterministic=True), np.uint8)
    np.savez_compressed(path, graph=data, **arrays)


def _input(info: Any, rng: np.random.Generator) -> np.ndarray:
    shape = [dim.size for dim in info.tensor_shape.dim]
    sizes = [BATCH, STEPS if shape[1] < 0 else shape[1], *shape[2:]]
    array = rng.standard_normal(sizes).astype(np.float32)
    array[0, -2:] = 0  # what Masking leaves out
    return array


def _stripped(graph: Any, fetches: Iterable[str]) -> Any:
    """Return the nodes and functions that `fetches` need, without attributes of no effect."""
    stripped = v1.graph_util.extract_sub_graph(graph, [name.split(":")[0] for name in fetches])
    functions = {function.signature.name: function for function in graph.library.function}
    needed: dict[str, None] = {}
    pending = list(_named(stripped.node, functions))
    while pending:
        name = pending.pop()
        if name not in needed:
            needed[name] = None
            pending += _named(functions[name].node_def, functions)
    stripped.library.Clear()
    stripped.library.function.extend(functions[name] for name in sorted(needed))
    for function in stripped.library.function:
        function.ClearField("arg_attr")
        for key in list(function.attr):
            del function.attr[key]
    for nodes in (stripped.node, *(each.node_def for each in stripped.library.function)):
        for node in nodes:
            node.ClearField("experimental_debug_info")
            for key in [each for each in node.attr if each.startswith("_") or "shapes" in each]:
                del node.attr[key]
    return stripped


def _named(nodes: Any, functions: Any) -> Iterable[str]:
    for node in nodes:
        for value in node.attr.values():
            if value.func.name in functions:
                yield value.func.name


def _add_initializer(graph: Any, session: Any) -> None:
    """Add the node `initialize`, which gives the variables their values in the session."""
    assigned = []
    for node in [each for each in graph.node if each.op == "VarHandleOp"]:
        dtype = tf.dtypes.as_dtype(node.attr["dtype"].type)
        handle = session.graph.get_tensor_by_name(f"{node.name}:0")
        value = session.run(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))
        constant = graph.node.add(name=f"{node.name}/value", op="Const")
        constant.attr["dtype"].type = dtype.as_datatype_enum
        constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
        assign = graph.node.add(name=f"{node.name}/assign", op="AssignVariableOp")
        assign.input.extend([node.name, constant.name])
        assign.attr["dtype"].type = dtype.as_datatype_enum
        assigned.append(f"^{assign.name}")
    graph.node.add(name="initialize", op="NoOp", input=assigned)


def main(names: list[str]) -> None:
    FIXTURES.mkdir(exist_ok=True)
    wanted = [(name, "", keras, make) for name, make in MODELS.items()]
    if importlib.util.find_spec("tf_keras"):
        keras_2 = importlib.import_module("tf_keras")
        wanted += [(name, "_keras_2", keras_2, MODELS[name]) for name in KERAS_2]
    for name, suffix, api, make in wanted:
        path = FIXTURES / f"{name}{suffix}.npz"
        if not path.exists() and (not names or path.stem in names):
            api.utils.set_random_seed(1)
            write(path, make(api))
            print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
