"""Kernels that read and write files and checkpoints, and that parse and serialize records."""

MODULES: tuple[str, ...] = (
    "audio",
    "checkpoint",
    "checkpoint_remapping",
    "checkpoint_v1",
    "csv_decoding",
    "example_json",
    "example_parsing",
    "files",
    "image_summaries",
    "proto_decoding",
    "proto_encoding",
    "record_decoding",
    "record_input",
    "sequence_example_parsing",
    "summaries",
    "summary_writers",
    "tensor_serialization",
)
