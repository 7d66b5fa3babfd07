"""Kernels for variables and their training updates, and for other resources of a session."""

MODULES: tuple[str, ...] = (
    "barriers",
    "conditional_accumulators",
    "dataset_thread_pools",
    "lookup_table_handles",
    "lookup_tables",
    "mutexes",
    "ref_variables",
    "resource_variables",
    "session_tensors",
    "stacks",
    "staging",
    "tensor_arrays",
    "training",
    "variable_updates",
)
