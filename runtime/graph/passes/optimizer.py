"""The optimiser: passes over a step's graph, in a fixed order. No pass changes results.

A step's graph is a clone made for one set of feeds, so a pass may remove nodes that another step
feeds. `OptimizerOptions.opt_level` L0 turns off all passes and function inlining, except constant
folding and common subexpression elimination where their own options turn them on.

TF: tensorflow/core/common_runtime/graph_optimizer.cc, config.proto (OptimizerOptions)
"""

from __future__ import annotations

import dataclasses

import protos as pb
from runtime.framework.kernel_registry import KernelRegistry
from runtime.graph.passes.arithmetic_simplification import simplify_arithmetic
from runtime.graph.passes.common_subexpressions import share_subexpressions
from runtime.graph.passes.constant_folding import MAX_FOLDED_BYTES, fold_constants
from runtime.graph.passes.dead_branches import remove_dead_branches
from runtime.graph.passes.pruning import StepGraph


@dataclasses.dataclass(frozen=True, slots=True)
class Optimizer:
    """Which passes run. The default is TensorFlow's level L1."""

    is_on: bool = True
    folds_constants: bool = True
    shares_subexpressions: bool = True
    max_folded_bytes: int = MAX_FOLDED_BYTES

    @classmethod
    def from_config(cls, config: pb.ConfigProto) -> Optimizer:
        """The optimiser that a session's configuration requests."""
        options = config.graph_options.optimizer_options
        is_on = options.opt_level != pb.OptimizerOptions.L0
        return cls(
            is_on,
            is_on or options.do_constant_folding,
            is_on or options.do_common_subexpression_elimination,
            options.max_folded_constant_in_bytes or MAX_FOLDED_BYTES,
        )

    def before_inlining(self, graph: StepGraph) -> None:
        """Run the pass that removes function calls, in place."""
        if self.is_on:
            remove_dead_branches(graph)

    def after_inlining(self, graph: StepGraph, kernels: KernelRegistry) -> None:
        """Run the passes over single operations, in place."""
        if self.folds_constants:
            fold_constants(graph, kernels, self.max_folded_bytes)
        if self.is_on:
            simplify_arithmetic(graph)
        if self.shares_subexpressions:
            share_subexpressions(graph)
