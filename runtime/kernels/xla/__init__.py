"""Kernels of the ops that TensorFlow's compiler defines: exports of JAX before 2023 have them."""

MODULES: tuple[str, ...] = (
    "contractions",
    "convolutions",
    "indexing",
    "pass_through",
    "reductions",
    "scattering",
    "sorting",
    "windows",
)
