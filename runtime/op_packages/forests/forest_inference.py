"""Kernels that load a decision forest and apply it.

Source: yggdrasil_decision_forests/port/tensorflow (inference_interface.cc, inference.cc)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import DEFAULT_CONTAINER, Resource, ResourceHandle
from runtime.framework.resource_op_kernel import resource_handle
from runtime.framework.string_tensor import as_strings, scalar_string, string_tensor
from runtime.op_packages.forests.forest import Features, Forest, model_files

_LEAVES = "LEAVES"  # a special output that a model may be loaded for


class ForestResource(Resource):
    """A forest that is loaded once; sessions that start from a template share it."""

    type_name = "YggdrasilModelResource"

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _forest, which is set once
        self._forest: Forest | None = None
        self._is_shared = False

    def load(self, folder: str, file_prefix: str) -> None:
        """Load the forest, in place of one that is loaded; it stays if the new one is damaged."""
        forest = Forest(folder, file_prefix)
        with self._lock:
            self._forest, self._is_shared = forest, False

    @property
    def forest(self) -> Forest:
        """The loaded forest; raises FailedPreconditionError if there is none."""
        if self._forest is None:
            raise FailedPreconditionError("The forest has not been loaded: run the init op first")
        return self._forest

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the forest, or 0 if a fork shares it."""
        forest = self._forest
        return (0 if forest is None or self._is_shared else forest.bytes), ()

    def fork(self) -> ForestResource:
        """Return a resource with the same forest, which never changes."""
        copy = ForestResource()
        with self._lock:
            copy._forest = self._forest
            copy._is_shared = self._is_shared = self._forest is not None
        return copy


def create_model_resource(
    context: OpKernelContext, *, container: str, shared_name: str
) -> ResourceHandle:
    """SimpleMLCreateModelResource: return the handle of a forest that is yet to be loaded."""
    return resource_handle(
        context, container, shared_name, ForestResource, lambda _: ForestResource()
    )


def load_model_with_handle(
    context: OpKernelContext, model_handle: ResourceHandle, path: np.ndarray, *, file_prefix: str
) -> None:
    """SimpleMLLoadModelFromPathWithHandle: load the forest in a folder into a resource.

    Raises InvalidArgumentError if it is damaged, PermissionDeniedError if the step may not read it.
    """
    _load(context, _resource(context, model_handle), path, file_prefix)


def load_model(context: OpKernelContext, path: np.ndarray, *, model_identifier: str) -> None:
    """SimpleMLLoadModelFromPath: load the forest in a folder under a name."""
    resource = context.resources.look_up_or_create(
        DEFAULT_CONTAINER, ForestResource, model_identifier, ForestResource
    )
    _load(context, resource, path, "")


def _load(
    context: OpKernelContext, resource: ForestResource, path: np.ndarray, file_prefix: str
) -> None:
    if np.size(path) != 1:
        raise InvalidArgumentError(f"path must be one string, got shape {list(np.shape(path))}")
    folder = os.fsdecode(scalar_string(as_strings(path).reshape(())))
    context.step.files.check_read(folder)
    for file in model_files(folder, file_prefix):  # a link may lead out of the folder
        context.step.files.check_read(file)
    resource.load(folder, file_prefix)


def _resource(context: OpKernelContext, handle: ResourceHandle) -> ForestResource:
    if isinstance(handle.resource, ForestResource):
        return handle.resource
    return context.resources.look_up(handle.container, ForestResource, handle.name)


def infer_with_handle(
    context: OpKernelContext,
    numerical: np.ndarray,
    boolean: np.ndarray,
    categorical: np.ndarray,
    set_values: np.ndarray,
    set_splits: np.ndarray,
    row_splits: np.ndarray,
    model_handle: ResourceHandle,
    *,
    dense_output_dim: int,
) -> tuple[np.ndarray, np.ndarray]:
    """SimpleMLInferenceOpWithHandle: return (predictions float32 `[batch, n]`, names `[n]`).

    Raises InvalidArgumentError if the features do not fit the forest.
    """
    features = Features(numerical, boolean, categorical, set_values, set_splits, row_splits)
    return _infer(_resource(context, model_handle).forest, features, dense_output_dim)


def infer(
    context: OpKernelContext,
    numerical: np.ndarray,
    boolean: np.ndarray,
    categorical: np.ndarray,
    set_values: np.ndarray,
    set_splits: np.ndarray,
    row_splits: np.ndarray,
    *,
    model_identifier: str,
    dense_output_dim: int,
) -> tuple[np.ndarray, np.ndarray]:
    """SimpleMLInferenceOp: as SimpleMLInferenceOpWithHandle, with a forest that has a name."""
    features = Features(numerical, boolean, categorical, set_values, set_splits, row_splits)
    resource = context.resources.look_up(DEFAULT_CONTAINER, ForestResource, model_identifier)
    return _infer(resource.forest, features, dense_output_dim)


def _infer(
    forest: Forest, features: Features, dense_output_dim: int
) -> tuple[np.ndarray, np.ndarray]:
    if dense_output_dim != len(forest.classes):
        raise InvalidArgumentError(
            f"dense_output_dim is {dense_output_dim}, but the forest has {len(forest.classes)} "
            "outputs"
        )
    names = string_tensor([name.encode() for name in forest.classes], (len(forest.classes),))
    return forest.predict(features), names


def leaf_indices(
    context: OpKernelContext,
    numerical: np.ndarray,
    boolean: np.ndarray,
    categorical: np.ndarray,
    set_values: np.ndarray,
    set_splits: np.ndarray,
    row_splits: np.ndarray,
    model_handle: ResourceHandle,
) -> np.ndarray:
    """SimpleMLInferenceLeafIndexOpWithHandle: return the leaves int32 `[batch, trees]`."""
    features = Features(numerical, boolean, categorical, set_values, set_splits, row_splits)
    return _resource(context, model_handle).forest.leaves(features)


def _inputs_need(*inputs: object, dense_output_dim: int) -> int:
    """Bytes of a prediction: copies of the columns, names of the items, and the outputs."""
    given = sum(each.nbytes for each in inputs if isinstance(each, np.ndarray))
    rows = max(
        (len(each) for each in inputs if isinstance(each, np.ndarray) and each.ndim), default=0
    )
    return 16 * given + 8 * rows * max(dense_output_dim, 1)


KERNELS = (
    KernelDef("SimpleMLCreateModelResource", create_model_resource),
    KernelDef("SimpleMLInferenceLeafIndexOpWithHandle", leaf_indices, expensive=True),
    KernelDef("SimpleMLInferenceOp", infer, expensive=True, memory=_inputs_need),
    KernelDef("SimpleMLInferenceOpWithHandle", infer_with_handle, expensive=True,
              memory=_inputs_need),
    KernelDef("SimpleMLLoadModelFromPath", load_model, expensive=True),
    KernelDef("SimpleMLLoadModelFromPathWithHandle", load_model_with_handle, expensive=True),
)  # fmt: skip
