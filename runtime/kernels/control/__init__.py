"""Kernels of control flow, function calls, assertions and transfers between devices."""

MODULES: tuple[str, ...] = (
    "assertions",
    "batch_functions",
    "clock",
    "control_flow",
    "debugging",
    "map_functions",
    "remote_calls",
    "step_batches",
    "transfer",
)
