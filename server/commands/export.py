"""`runstep export DIR OUT [--freeze]`: write a SavedModel again, or freeze it."""

from __future__ import annotations

import argparse

import protos as pb
from runtime.api import SessionOptions, export_bundle, load_saved_model
from server.commands.model_folder import find_saved_model, read_tags
from server.commands.progress import Progress

_CALLER_THREAD = pb.RunOptions(inter_op_thread_pool=-1)


def export(options: argparse.Namespace) -> int:
    """Load the SavedModel and write it; raise OpError with a message that says what to change."""
    folder = find_saved_model(options.directory)
    with Progress(f"Loading {folder}"):
        bundle = load_saved_model(SessionOptions(), _CALLER_THREAD, folder, read_tags(options.tags))
    with Progress(f"Writing {options.output}"):
        export_bundle(bundle, options.output, freeze=options.freeze)
    return 0
