"""The module `tf.compat.v1.train`: optimisers, savers, queue runners, and the global step.

TF: tensorflow/python/training/training.py, training_util.py
"""

from __future__ import annotations

from runtime.client.framework.graph import Graph, get_default_graph
from runtime.client.framework.graph_elements import GraphKeys
from runtime.client.framework.operation import SessionLike, Tensor
from runtime.client.ops.initializers import zeros_initializer
from runtime.client.ops.variable_scopes import get_variable
from runtime.client.ops.variables import Variable
from runtime.client.training.checkpoint_reader import (
    CheckpointReader,
    list_variables,
    load_checkpoint,
    load_variable,
)
from runtime.client.training.coordinator import (
    Coordinator,
    QueueRunner,
    add_queue_runner,
    start_queue_runners,
)
from runtime.client.training.learning_rates import (
    cosine_decay,
    exponential_decay,
    inverse_time_decay,
    natural_exp_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from runtime.client.training.meta_graph import export_meta_graph
from runtime.client.training.optimizer import Optimizer
from runtime.client.training.optimizers import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    RMSPropOptimizer,
)
from runtime.client.training.saver import (
    Saver,
    checkpoint_exists,
    import_meta_graph,
    latest_checkpoint,
)
from runtime.framework.dtypes import DataType

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "CheckpointReader",
    "Coordinator",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "NewCheckpointReader",
    "Optimizer",
    "QueueRunner",
    "RMSPropOptimizer",
    "Saver",
    "add_queue_runner",
    "checkpoint_exists",
    "cosine_decay",
    "exponential_decay",
    "export_meta_graph",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "import_meta_graph",
    "inverse_time_decay",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "natural_exp_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
    "start_queue_runners",
]

NewCheckpointReader = CheckpointReader


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """Return the variable that counts training steps, or None if the graph has none."""
    found = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return found[0] if found else None


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """Return the variable that counts training steps; if there is none, it is created."""
    graph = graph or get_default_graph()
    known = get_global_step(graph)
    if known is not None:
        return known
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            GraphKeys.GLOBAL_STEP,
            [],
            DataType.INT64,
            zeros_initializer(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def global_step(sess: SessionLike, global_step_tensor: Tensor | Variable) -> int:
    """Return the current number of training steps in a session."""
    return int(sess.run(global_step_tensor))
