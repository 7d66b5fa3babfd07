"""The passes over a step's graph, in the order in which they run. No pass changes results.

A step is one `Session.run`. Compiling it runs `pruning.prune`, which clones the nodes of the
session's graph that the step needs; then the passes in `PASSES`, below; then `placer.place`; and,
if the step runs on several devices, `partition.partition`. The body of a function that is called
and not inlined is compiled in the same way, without pruning.

A step's graph is a clone made for one set of feeds, so a pass may remove nodes that another step
feeds. If `OptimizerOptions.opt_level` is L0, every pass that has a condition in `PASSES` is off.
Constant folding and common subexpression elimination have options that turn them on even then.

TF: tensorflow/core/common_runtime/graph_optimizer.cc, config.proto (OptimizerOptions)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import protos as pb
from runtime.foundation.running_task import check_task
from runtime.framework.kernel_registry import KernelRegistry
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.passes.arithmetic_simplification import simplify_arithmetic
from runtime.graph.passes.common_subexpressions import share_subexpressions
from runtime.graph.passes.constant_folding import MAX_FOLDED_BYTES, fold_constants
from runtime.graph.passes.dead_branches import remove_dead_branches
from runtime.graph.passes.function_inlining import inline_functions
from runtime.graph.passes.loop_invariant_reads import move_reads_before_loops
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.passes.unreached_nodes import remove_unreached_nodes


@dataclasses.dataclass(frozen=True, slots=True)
class Optimizer:
    """Which of the conditional passes run. The default is the same as TensorFlow's level L1."""

    is_on: bool = True
    folds_constants: bool = True
    shares_subexpressions: bool = True
    max_folded_bytes: int = MAX_FOLDED_BYTES

    @classmethod
    def from_config(cls, config: pb.ConfigProto) -> Optimizer:
        """Return the optimiser that the configuration `config` of a session requests."""
        options = config.graph_options.optimizer_options
        is_on = options.opt_level != pb.OptimizerOptions.L0
        return cls(
            is_on,
            is_on or options.do_constant_folding,
            is_on or options.do_common_subexpression_elimination,
            options.max_folded_constant_in_bytes or MAX_FOLDED_BYTES,
        )

    def run(self, graph: StepGraph, library: FunctionLibrary, kernels: KernelRegistry) -> None:
        """Run the passes, which change `graph`; `library` has the functions that its nodes call."""
        context = PassContext(self, library, kernels)
        for is_enabled, run_pass in PASSES:
            check_task()
            if is_enabled(self):
                run_pass(graph, context)


@dataclasses.dataclass(frozen=True, slots=True)
class PassContext:
    """What a pass may use besides the graph."""

    optimizer: Optimizer
    library: FunctionLibrary
    kernels: KernelRegistry


def _inline_functions(graph: StepGraph, context: PassContext) -> None:
    inline_functions(graph, context.library, context.optimizer.is_on)


def _move_reads(graph: StepGraph, context: PassContext) -> None:
    move_reads_before_loops(graph, context.library)


def _fold_constants(graph: StepGraph, context: PassContext) -> None:
    fold_constants(graph, context.kernels, context.optimizer.max_folded_bytes)


# (whether an optimiser runs the pass, the pass), in the order in which the passes run.
PASSES: tuple[tuple[Callable[[Optimizer], bool], Callable[[StepGraph, PassContext], None]], ...] = (
    # This pass runs before inlining, so that only the bodies of taken branches are inlined.
    (lambda optimizer: optimizer.is_on, lambda graph, _: remove_dead_branches(graph)),
    # This pass also runs at L0. There it only turns nodes whose op is a function into call ops.
    (lambda optimizer: True, _inline_functions),
    (lambda optimizer: optimizer.is_on, _move_reads),
    (lambda optimizer: optimizer.folds_constants, _fold_constants),
    (lambda optimizer: optimizer.is_on, lambda graph, _: simplify_arithmetic(graph)),
    (
        lambda optimizer: optimizer.shares_subexpressions,
        lambda graph, _: share_subexpressions(graph),
    ),
    (lambda optimizer: True, lambda graph, _: remove_unreached_nodes(graph)),
)
