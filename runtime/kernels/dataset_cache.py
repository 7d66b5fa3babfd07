"""Datasets whose elements are made once and kept: in memory, or in a tensor bundle.

TF: tensorflow/core/kernels/data/{cache_dataset,cache}_op.cc
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import Any

from runtime.foundation.errors import AlreadyExistsError, UnimplementedError
from runtime.framework.attr_value import text
from runtime.framework.dataset import (
    DatasetIterator,
    Element,
    State,
    UnaryDataset,
    UnaryIterator,
)
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.resource_manager import Resource, ResourceHandle
from runtime.framework.string_tensor import scalar_string
from runtime.framework.tensor_bundle import index_path
from runtime.framework.tensor_bundle_reader import TensorBundleReader
from runtime.framework.tensor_bundle_writer import TensorBundleWriter

Types = tuple[DataType, ...]
Shapes = tuple[PartialShape, ...]
_numbers = itertools.count()  # next() is atomic


class MemoryCache(Resource):
    """The elements of a dataset, once one pass has seen them all.

    Guarantees: thread-safe; the first complete pass decides.
    """

    type_name = "N10tensorflow4data18MemoryCacheManagerE"

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the change of elements
        self.elements: list[Element] | None = None

    def complete(self, elements: list[Element]) -> None:
        """Keep the elements unless another pass was first."""
        with self._lock:
            if self.elements is None:
                self.elements = elements


def anonymous_memory_cache() -> tuple[ResourceHandle, None]:
    """AnonymousMemoryCache: (a cache that only its handle knows, its deleter)."""
    name = f"AnonymousMemoryCache{next(_numbers)}"
    return ResourceHandle("", name, MemoryCache.type_name, resource=MemoryCache()), None


def dummy_memory_cache() -> ResourceHandle:
    """DummyMemoryCache: a handle of nothing; each dataset then has a cache of its own."""
    return ResourceHandle("", "", MemoryCache.type_name)


def delete_memory_cache(handle: Any, deleter: Any) -> None:
    """DeleteMemoryCache: nothing; a cache lives as long as its handles."""


class CacheDataset(UnaryDataset):
    """CacheDataset of both versions."""

    kind = "MemoryCache"

    def __init__(
        self,
        input_dataset: Any,
        filename: Any,
        cache: Any = None,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        self.filename = text(scalar_string(filename))
        resource = cache.resource if isinstance(cache, ResourceHandle) else None
        self.cache = resource if isinstance(resource, MemoryCache) else MemoryCache()

    @property
    def has_random_access(self) -> bool:
        """As the input, in memory."""
        return not self.filename and self.input.has_random_access

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """The kept element, or the input's."""
        if self.cache.elements is not None:
            return self.cache.elements[index]
        return self.input.element_at(context, index)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """What was kept, or the input, which is kept meanwhile."""
        if not self.filename:
            return _MemoryIterator(self, context, prefix)
        context.step.files.check_read(self.filename)
        if os.path.exists(index_path(self.filename)):
            return _FileReaderIterator(self, context)
        return _FileWriterIterator(self, context, prefix)


class _MemoryIterator(UnaryIterator):
    state = ("input", "seen", "position")

    def __init__(self, dataset: CacheDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._cache = dataset.cache
        self.seen: list[Element] | None = [] if dataset.cache.elements is None else None
        self.position = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self.seen is None:
            elements = self._cache.elements or []
            if self.position >= len(elements):
                return None
            self.position += 1
            return elements[self.position - 1]
        element = self.next_input(context)
        if element is None:
            self._cache.complete(self.seen)
        else:
            self.seen.append(element)
        return element

    def save(self) -> State:
        return {**super().save(), "kept": self._cache.elements if self.seen is None else None}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        if saved["kept"] is not None:
            self._cache.complete(saved["kept"])


class _FileWriterIterator(UnaryIterator):
    """The input's elements, written to a bundle when the last has been seen."""

    def __init__(self, dataset: CacheDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self._seen: list[Element] = []

    def get_next(self, context: OpKernelContext) -> Element | None:
        is_running = self.input is not None
        element = self.next_input(context)
        if element is not None:
            self._seen.append(element)
        elif is_running:
            self._write(context)
        return element

    def _write(self, context: OpKernelContext) -> None:
        filename = self._dataset.filename
        if os.path.exists(index_path(filename)):
            raise AlreadyExistsError(
                f"There appears to be a concurrent caching iterator running: {filename} is there"
            )
        with TensorBundleWriter(filename, context.step.files) as writer:
            for index, element in enumerate(self._seen):
                parts = zip(element, self._dataset.output_types, strict=True)
                for component, (value, data_type) in enumerate(parts):
                    writer.add(_key(index, component), value, data_type)
            writer.finish()

    def save(self) -> State:
        raise UnimplementedError("A dataset that writes a cache file can't be saved meanwhile")


def _key(index: int, component: int) -> str:
    return f"{index:05}_{component}"


class _FileReaderIterator(DatasetIterator):
    state = ("position",)

    def __init__(self, dataset: CacheDataset, context: OpKernelContext) -> None:
        self._reader = TensorBundleReader(dataset.filename, context.step.files)
        self._count = len(dataset.output_types)
        self.position = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        keys = [_key(self.position, component) for component in range(self._count)]
        if not keys or keys[0] not in self._reader:
            return None
        self.position += 1
        return tuple(self._reader.read(key) for key in keys)


KERNELS = (
    KernelDef("AnonymousMemoryCache", anonymous_memory_cache),
    KernelDef("CacheDataset", CacheDataset),
    KernelDef("CacheDatasetV2", CacheDataset),
    KernelDef("DeleteMemoryCache", delete_memory_cache),
    KernelDef("DummyMemoryCache", dummy_memory_cache),
)
