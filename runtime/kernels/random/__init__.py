"""Kernels that draw random and quasi-random numbers."""

MODULES: tuple[str, ...] = (
    "random_index_shuffle",
    "random_stateful",
    "random_stateless",
    "random_truncated",
    "sobol",
)
