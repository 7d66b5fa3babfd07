"""Creates a session with the graph of a MetaGraphDef, without restoring variables.

Served models and sessions that clients open both use `load_meta_graph_into_session`.

TF: tensorflow/cc/saved_model/loader.cc (LoadMetagraphIntoSession, ValidateSavedTensors)
"""

from __future__ import annotations

import protos as pb
from runtime.foundation.errors import FailedPreconditionError
from runtime.registrations import new_session
from runtime.sessions.runtime_session import RuntimeSession
from runtime.sessions.session_options import SessionOptions


def load_meta_graph_into_session(
    options: SessionOptions, meta_graph_def: pb.MetaGraphDef
) -> RuntimeSession:
    """Return a new session with the graph of `meta_graph_def`.

    Raises what `new_session`, `validate_saved_tensors` and `RuntimeSession.create` raise. If it
    raises, the session is closed.
    """
    session = new_session(options)
    try:
        validate_saved_tensors(meta_graph_def.graph_def)
        session.create(meta_graph_def.graph_def)
    except BaseException:
        session.close()
        raise
    return session


def validate_saved_tensors(graph_def: pb.GraphDef) -> None:
    """Raise FailedPreconditionError if a constant has no value or its shape has a negative size.

    Constants in functions are checked too. Also raise FailedPreconditionError if a function has a
    node whose op is the function itself.
    """
    for node in graph_def.node:
        _validate_node(node)
    for function in graph_def.library.function:
        for node in function.node_def:
            _validate_node(node)
            if node.op == function.signature.name:
                raise FailedPreconditionError(
                    f"Function {node.op} is self recursive and TensorFlow does not support this "
                    "scenario."
                )


def _validate_node(node: pb.NodeDef) -> None:
    if "value" in node.attr:
        value = node.attr["value"]
        shape = value.tensor.tensor_shape
        if value.WhichOneof("value") == "tensor" and (
            shape.unknown_rank or any(dim.size < 0 for dim in shape.dim)
        ):
            raise FailedPreconditionError(
                f'Saved model contains node "{node.name}" (op "{node.op}") which initializes from '
                "a tensor with -1 elements"
            )
    elif node.op == "Const":
        raise FailedPreconditionError(
            f'Saved model contains node "{node.name}" which is a constant tensor but no value has '
            "been provided"
        )
