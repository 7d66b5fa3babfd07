"""The optimiser: passes over a step's graph, in order. None changes results or what may be fed.

A step's graph is a clone made for one set of feeds, so a pass never takes away a name that somebody
could feed. `OptimizerOptions.opt_level` L0 turns all of them off, inlining of functions too, but
the two that have switches of their own, where these ask for them.

TF: tensorflow/core/common_runtime/graph_optimizer.cc, config.proto (OptimizerOptions)
"""

from __future__ import annotations

import dataclasses

import protos as pb
from runtime.framework.kernel_registry import KernelRegistry
from runtime.graph.arithmetic_simplification import simplify_arithmetic
from runtime.graph.common_subexpressions import share_subexpressions
from runtime.graph.constant_folding import MAX_FOLDED_BYTES, fold_constants
from runtime.graph.dead_branches import remove_dead_branches
from runtime.graph.pruning import StepGraph


@dataclasses.dataclass(frozen=True, slots=True)
class Optimizer:
    """Which passes run. The default is TensorFlow's level L1."""

    is_on: bool = True
    folds_constants: bool = True
    shares_subexpressions: bool = True
    max_folded_bytes: int = MAX_FOLDED_BYTES

    @classmethod
    def from_config(cls, config: pb.ConfigProto) -> Optimizer:
        """What a session's configuration asks for."""
        options = config.graph_options.optimizer_options
        is_on = options.opt_level != pb.OptimizerOptions.L0
        return cls(
            is_on,
            is_on or options.do_constant_folding,
            is_on or options.do_common_subexpression_elimination,
            options.max_folded_constant_in_bytes or MAX_FOLDED_BYTES,
        )

    def before_inlining(self, graph: StepGraph) -> None:
        """The pass that decides which functions are called at all."""
        if self.is_on:
            remove_dead_branches(graph)

    def after_inlining(self, graph: StepGraph, kernels: KernelRegistry) -> None:
        """The passes that look at single operations."""
        if self.folds_constants:
            fold_constants(graph, kernels, self.max_folded_bytes)
        if self.is_on:
            simplify_arithmetic(graph)
        if self.shares_subexpressions:
            share_subexpressions(graph)
