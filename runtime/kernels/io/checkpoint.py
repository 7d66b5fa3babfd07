"""Kernels that save and restore checkpoints in the V2 format.

RestoreV2 returns tensors with equal contents as one read-only array. The reason is that Keras
exports store each variable under two keys; because the array is shared, the weights of such a model
take their memory only once.

TF: tensorflow/core/kernels/save_restore_v2_ops.cc, save_restore_tensor.cc, save_op.cc
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes, text
from runtime.framework.dtypes import DataType
from runtime.framework.io.shared_tensors import shared_tensors
from runtime.framework.io.tensor_bundle import index_path
from runtime.framework.io.tensor_bundle_merge import merge_bundles
from runtime.framework.io.tensor_bundle_reader import BundleEntry, TensorBundleReader
from runtime.framework.io.tensor_bundle_writer import TensorBundleWriter
from runtime.framework.io.tensor_slice import parse_shape_and_slice
from runtime.framework.io.tensor_slice_file import TensorSliceReader
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import shape_text
from runtime.kernels.io.checkpoint_v1 import read_spec


def save_v2(
    context: OpKernelContext,
    prefix: np.ndarray,
    tensor_names: np.ndarray,
    shape_and_slices: np.ndarray,
    *tensors: np.ndarray,
    dtypes: Sequence[DataType],
) -> None:
    """SaveV2: write `tensors` as bundle `prefix`.

    If an element of `shape_and_slices` is not empty, it says which slice of a larger tensor the
    corresponding tensor is.
    """
    names, specs = _check_lists(tensor_names, shape_and_slices)
    if len(names) != len(tensors):
        raise InvalidArgumentError(f"Got {len(names)} tensor names but {len(tensors)} tensors.")
    with TensorBundleWriter(_prefix(prefix), context.step.files) as writer:
        for name, spec, tensor, dtype in zip(names, specs, tensors, dtypes, strict=True):
            context.cancellation.check()
            if not spec:
                writer.add(name, tensor, dtype)
                continue
            shape, part = parse_shape_and_slice(spec)
            if part.shape_in(shape) != np.shape(tensor):
                raise InvalidArgumentError(
                    "Slice in shape_and_slice specification does not match the shape of the "
                    f"tensor to  save: {spec}, tensor: {shape_text(np.shape(tensor))}"
                )
            writer.add_slice(name, shape, part, tensor, dtype)
        writer.finish()


def restore_v2(
    context: OpKernelContext,
    prefix: np.ndarray,
    tensor_names: np.ndarray,
    shape_and_slices: np.ndarray,
    *,
    dtypes: Sequence[DataType],
) -> list[np.ndarray]:
    """RestoreV2: read the named tensors, or slices of them, from the checkpoint `prefix`.

    The checkpoint is a bundle or, if there is no bundle, a checkpoint in the V1 format.
    """
    if np.ndim(tensor_names) == 1 and len(tensor_names) != len(dtypes):
        raise InvalidArgumentError(
            f"Got {len(tensor_names)} tensor names, but {len(dtypes)} expected dtypes."
        )
    names, specs = _check_lists(tensor_names, shape_and_slices)
    path = _prefix(prefix)
    context.step.files.check_read(index_path(path))
    if not os.path.exists(index_path(path)):
        reader_v1 = TensorSliceReader(path, context.step.files)
        return [read_spec(reader_v1, *each) for each in zip(names, specs, dtypes, strict=True)]
    with TensorBundleReader(path, context.step.files) as reader:
        for name, dtype in zip(names, dtypes, strict=True):
            _check_dtype(name, reader.entry(name), dtype)
        whole = [name for name, spec in zip(names, specs, strict=True) if not spec]
        shared = shared_tensors(reader, whole, context.cancellation.check)
        restored = _RestoredTensors(reader, shared)
        results = []
        for name, spec in zip(names, specs, strict=True):
            context.cancellation.check()
            results.append(restored.slice_of(name, spec) if spec else restored.whole(name))
    return results


class _RestoredTensors:
    """The tensors that one run of RestoreV2 has read so far; equal tensors share one array.

    `shared` are those that it need not read.
    """

    def __init__(self, reader: TensorBundleReader, shared: Mapping[str, np.ndarray]) -> None:
        self._reader = reader
        self._shared = shared
        # Equal checksums make it likely, but not certain, that tensors have equal contents.
        # Therefore their bytes are compared as well.
        self._seen: dict[object, list[np.ndarray]] = defaultdict(list)

    def whole(self, name: str) -> np.ndarray:
        if name in self._shared:
            return self._shared[name]
        entry = self._reader.entry(name)
        if entry.slices or entry.dtype.numpy.hasobject:
            return self._reader.read(name)
        same = self._seen[entry.dtype, entry.shape, entry.checksum]
        for value in same:
            if self._reader.is_stored_as(entry, value):
                return value
        value = self._reader.read(name)
        value.flags.writeable = False  # the array may be the value of several outputs
        same.append(value)
        return value

    def slice_of(self, name: str, spec: str) -> np.ndarray:
        shape, part = parse_shape_and_slice(spec)
        entry = self._reader.entry(name)
        if entry.shape != shape:
            raise InvalidArgumentError(
                f"tensor_name = {name}; shape in shape_and_slice spec {shape_text(shape)} does not "
                f"match the shape stored in checkpoint: {shape_text(entry.shape)}"
            )
        if entry.dtype is DataType.STRING and not part.is_full(shape):
            raise InvalidArgumentError("Dtype string not supported.")
        return self._reader.read_slice(name, part)


def merge_v2_checkpoints(
    context: OpKernelContext,
    checkpoint_prefixes: np.ndarray,
    destination_prefix: np.ndarray,
    *,
    delete_old_dirs: bool,
    allow_missing_files: bool,
) -> None:
    """MergeV2Checkpoints: merge the bundles `checkpoint_prefixes` into one; move their shards."""
    if np.ndim(checkpoint_prefixes) != 1:
        raise InvalidArgumentError(
            "Input checkpoint_prefixes should be an 1-D tensor, got "
            f"{shape_text(np.shape(checkpoint_prefixes))} instead."
        )
    prefixes = [text(prefix) for prefix in checkpoint_prefixes.tolist()]
    if np.ndim(destination_prefix) != 0:
        raise InvalidArgumentError(
            "Input destination_prefix should be a scalar tensor, got "
            f"{shape_text(np.shape(destination_prefix))} instead."
        )
    destination = text(destination_prefix.item())
    merge_bundles(prefixes, destination, context.step.files, allow_missing_files)
    if not delete_old_dirs:
        return
    kept = os.path.dirname(destination)
    for folder in sorted({os.path.dirname(prefix) for prefix in prefixes} - {kept}):
        context.step.files.check_write(folder)
        # the folder is not empty or is gone; TensorFlow only logs this error
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def sharded_filename(basename: np.ndarray, shard: np.ndarray, num_shards: np.ndarray) -> np.ndarray:
    """ShardedFilename: return the name of one shard's file, like `<basename>-00003-of-00010`."""
    _check_scalars(basename=basename, shard=shard, num_shards=num_shards)
    return _string(f"{_until_nul(basename)}-{int(shard):05d}-of-{int(num_shards):05d}")


def sharded_filespec(basename: np.ndarray, num_shards: np.ndarray) -> np.ndarray:
    """ShardedFilespec: return the pattern of the file names, like `<basename>-?????-of-00010`."""
    _check_scalars(basename=basename, num_shards=num_shards)
    return _string(f"{_until_nul(basename)}-?????-of-{int(num_shards):05d}")


def _until_nul(name: np.ndarray) -> str:
    """Return `name` up to the first NUL, because TensorFlow formats it as a C string."""
    return text(name.item()).split("\0")[0]


def _check_scalars(**values: np.ndarray) -> None:
    for name, value in values.items():
        if np.ndim(value) != 0:
            raise InvalidArgumentError(
                f"{name} must be a scalar, got shape {shape_text(np.shape(value))}"
            )


def _string(value: str) -> np.ndarray:
    return np.array(raw_bytes(value), object)


def _prefix(prefix: np.ndarray) -> str:
    if np.size(prefix) != 1:
        raise InvalidArgumentError(
            f"Input prefix should have a single element, got {np.size(prefix)} instead."
        )
    return text(prefix.item())


def _check_lists(names: np.ndarray, specs: np.ndarray) -> tuple[list[str], list[str]]:
    if np.ndim(names) != 1 or np.ndim(specs) != 1:
        raise InvalidArgumentError(
            "Input tensor_names and shape_and_slices should be an 1-D tensors, got "
            f"{shape_text(np.shape(names))} and {shape_text(np.shape(specs))} instead."
        )
    if len(names) != len(specs):
        raise InvalidArgumentError(
            "tensor_names and shape_and_slices have different number of elements: "
            f"{len(names)} vs. {len(specs)}"
        )
    return [text(name) for name in names.tolist()], [text(spec) for spec in specs.tolist()]


def _check_dtype(name: str, entry: BundleEntry, expected: DataType) -> None:
    if entry.dtype != expected:
        raise InvalidArgumentError(
            f"tensor_name = {name}; expected dtype {expected.tf_name} does not equal original "
            f"dtype {entry.dtype.tf_name}"
        )


KERNELS = (
    KernelDef("SaveV2", save_v2, expensive=True),
    KernelDef("RestoreV2", restore_v2, expensive=True),
    KernelDef("MergeV2Checkpoints", merge_v2_checkpoints, expensive=True),
    KernelDef("ShardedFilename", sharded_filename),
    KernelDef("ShardedFilespec", sharded_filespec),
)
