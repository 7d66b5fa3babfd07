"""Runs of a compiled form: as a whole or in slices; a long run ends if its step is cancelled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.clusters.running.compiled_form import CompiledForm, now
from runtime.clusters.running.row_slices import RowSlices, run_in_slices
from runtime.foundation.native_calls import long_native_call
from runtime.framework.op_kernel import OpKernelContext

LONG_SECONDS = 1e-4  # a shorter run is not worth 5 µs of system calls
_STOPPABLE_SECONDS = 1e-3  # a shorter run ends before it could be stopped


def _run_stoppable(
    context: OpKernelContext, form: CompiledForm, arrays: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Run a model so that cancelling the step ends it."""
    control = form.model.control()
    token = context.cancellation.add_callback(control.stop)
    if token is None:
        context.cancellation.check()
    try:
        return form.model.run(arrays, control)
    finally:
        context.cancellation.remove_callback(token)


def run_whole(
    context: OpKernelContext, form: CompiledForm, arrays: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Run a form for all rows; `arrays` are its inputs and weights."""
    if form.seconds > _STOPPABLE_SECONDS:
        with long_native_call:
            return _run_stoppable(context, form, arrays)
    if form.seconds > LONG_SECONDS:
        with long_native_call:
            return form.model.run(arrays)
    return form.model.run(arrays)


def run_slices(
    context: OpKernelContext, form: CompiledForm, slices: RowSlices, arrays: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Run slices of a batch, each in one thread."""
    assert form.rows is not None

    def run(slice_: Sequence[np.ndarray]) -> list[np.ndarray]:
        with long_native_call:
            return _run_stoppable(context, form, slice_)

    outputs = run_in_slices(form.rows, arrays, slices.rows, slices.width, run)
    form.last_used = now()
    return outputs
