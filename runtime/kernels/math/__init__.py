"""Kernels of element-wise mathematics, reductions and segments."""

MODULES: tuple[str, ...] = (
    "bessel_functions",
    "bitwise",
    "casts",
    "clustering",
    "comparison",
    "complex_numbers",
    "cumulative",
    "elementwise_arithmetic",
    "elementwise_gradients",
    "elementwise_unary",
    "error_functions",
    "fourier",
    "gamma_functions",
    "gamma_gradients",
    "histograms",
    "integral_functions",
    "isotonic_regression",
    "reductions",
    "segment_math",
    "sparse_segments",
)
