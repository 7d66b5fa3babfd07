"""Kernels that compute with string tensors."""

MODULES: tuple[str, ...] = (
    "base64_text",
    "number_text",
    "string_hashing",
    "string_reductions",
    "string_regex",
    "string_split",
    "strings",
    "substrings",
    "unicode_scripts",
    "unicode_text",
)
