"""Kernels for sparse tensors, ragged tensors and sparse matrices."""

MODULES: tuple[str, ...] = (
    "edit_distance",
    "feature_crosses",
    "ragged",
    "ragged_crosses",
    "ragged_to_tensor",
    "ragged_variant",
    "sets",
    "sparse_counts",
    "sparse_fill_empty_rows",
    "sparse_math",
    "sparse_matrices",
    "sparse_matrix_products",
    "sparse_reduction",
    "sparse_serialization",
    "sparse_structure",
    "sparse_tensors_map",
    "sparse_to_dense",
)
