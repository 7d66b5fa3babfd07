"""Record which ops have a gradient function in TensorFlow, and which are not differentiable there.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record/gradient_registry.py

It writes docs/gradient_registry.json, which tools/write/gradient_table.py compares with the
gradient functions here. All modules are imported that register gradients only when they are.

TF: tensorflow/python/framework/ops.py (gradient_registry)
"""

import importlib
import json
import pathlib
import pkgutil

from tensorflow.python import ops as python_ops
from tensorflow.python.framework import op_def_registry, ops

TARGET = pathlib.Path(__file__).parents[2] / "docs" / "gradient_registry.json"
# Modules outside tensorflow/python/ops that register gradients.
REGISTERING = (
    "tensorflow.compiler.jit.ops.xla_ops_grad",
    "tensorflow.compiler.tf2xla.python.xla",
    "tensorflow.dtensor.python.api",
    "tensorflow.lite.experimental.microfrontend.python.ops.audio_microfrontend_op",
    "tensorflow.python.data.ops.dataset_ops",
    "tensorflow.python.debug.lib.debug_gradients",
    "tensorflow.python.debug.lib.dumping_callback",
    "tensorflow.python.tpu.ops.tpu_ops",
    "tensorflow.python.training.checkpoint_ops",
)


def import_all() -> list[str]:
    """Import every module that registers gradients; return those that cannot be imported."""
    names = [*REGISTERING]
    names += [
        module.name
        for module in pkgutil.walk_packages(python_ops.__path__, f"{python_ops.__name__}.")
        if not module.ispkg and "test" not in module.name
    ]
    failed = []
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # an optional package is missing
            failed.append(f"{name}: {error}")
    return failed


def registered() -> dict[str, list[str]]:
    known = ops.gradient_registry.list()
    found: dict[str, list[str]] = {"gradient": [], "not differentiable": [], "no op": []}
    for name in sorted(known):
        is_op = op_def_registry.get(name) is not None
        has_function = ops.gradient_registry.lookup(name) is not None
        kind = ("gradient" if has_function else "not differentiable") if is_op else "no op"
        found[kind].append(name)
    return found


if __name__ == "__main__":
    for line in import_all():
        print("not imported:", line)
    found = registered()
    TARGET.write_text(json.dumps(found, indent=0) + "\n")
    print({kind: len(names) for kind, names in found.items()})
