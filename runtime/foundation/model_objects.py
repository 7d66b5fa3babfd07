"""Put the objects of models into the C library's heap, which returns single pages.

Python's own allocator returns memory in arenas of 1 MiB that are wholly free. A few small objects
that are made while models are loaded, and stay, keep an arena each: 100 MB of 110 stayed after 20
MobileNetV2 had been unloaded. malloc_trim(3) returns every free page of the C library's heap.

While `model_objects` is entered, all threads allocate with malloc(3), which takes a few percent
longer for small objects. Objects that exist stay where they are: CPython's functions that free and
resize give an address that is in none of their arenas to the C library. (Python documents that of
the functions that PyMem_SetAllocator may set after the start: they must wrap the existing ones.
`sys.getallocatedblocks` does not count such objects.) For the same reason the elements of a short
list stay in Python's arenas if `append` put them there: realloc() is Python's own. A copy of the
list is made apart.

Guarantees: thread-safe; `model_objects` does nothing unless a program has called
`keep_model_objects_apart`, and there is CPython's usual allocator.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import tracemalloc
from collections.abc import Mapping

# PyMemAllocatorDomain
_RAW = 0
_DOMAINS = (1, 2)  # PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ


class _Allocator(ctypes.Structure):
    """PyMemAllocatorEx."""

    _fields_ = (
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class ModelObjects:
    """A context manager for what makes the long-living objects of a model; it may be nested."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards all fields, and the choice of the allocators
        self._entered = 0
        self._usual: dict[int, _Allocator] = {}
        self._apart: dict[int, _Allocator] = {}  # with C's malloc; empty if it is not used

    @property
    def is_used(self) -> bool:
        """Whether the objects are made apart."""
        return bool(self._apart)

    def use(self) -> None:
        """Make the objects apart from now on."""
        with self._lock:
            if self._apart:
                return
            c = _allocator_of(_RAW)
            for domain in _DOMAINS:
                usual = self._usual[domain] = _allocator_of(domain)
                self._apart[domain] = _Allocator(
                    usual.context, c.malloc, c.calloc, usual.realloc, usual.free
                )
            if self._entered:
                _set(self._apart)

    def __enter__(self) -> None:
        with self._lock:
            self._entered += 1
            if self._entered == 1:
                _set(self._apart)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered:
                _set(self._usual)


model_objects = ModelObjects()


def keep_model_objects_apart(environment: Mapping[str, str] = os.environ) -> None:
    """Let `model_objects` take effect in this process; only programs should call this.

    It does not with Python's debugging of memory (PYTHONMALLOC, -X dev, tracemalloc) and not
    without the global lock, where all objects must come from one allocator.
    """
    is_usual = (
        sys.platform == "linux"
        and sys.implementation.name == "cpython"
        and "t" not in sys.abiflags  # no free threading
        and not sys.flags.dev_mode
        and not environment.get("PYTHONMALLOC")
        and not tracemalloc.is_tracing()
    )
    if is_usual:
        model_objects.use()


def _allocator_of(domain: int) -> _Allocator:
    found = _Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(ctypes.c_int(domain), ctypes.byref(found))
    return found


def _set(allocators: Mapping[int, _Allocator]) -> None:
    """Choose the allocators of domains, with the interpreter's lock held."""
    for domain, allocator in allocators.items():
        ctypes.pythonapi.PyMem_SetAllocator(ctypes.c_int(domain), ctypes.byref(allocator))
