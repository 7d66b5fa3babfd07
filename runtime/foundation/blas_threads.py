"""The number of threads of the BLAS library that numpy calls.

Steps and kernels run in parallel on the session's own threads. A BLAS library with threads of its
own competes with them, and its threads wait in busy loops for one that another process has
displaced. Therefore the first direct session limits BLAS to one thread, and kernels split large
products themselves. The limit holds for the whole process: for the numpy of the host program too,
and for every other BLAS library that is loaded by then.

RUNSTEP_BLAS_THREADS changes this: "host" or 0 keeps the setting of the host program, a positive
number is the number of threads. The library is not touched if the environment variables that BLAS
libraries read at their start already limit them to one thread, as in the server.

A BLAS library that uses OpenMP has a number for each thread; only OMP_NUM_THREADS limits it.

Guarantees: thread-safe; the limit is set once, so that a later setting of the host program stays.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from runtime.foundation.errors import InvalidArgumentError

SWITCH = "RUNSTEP_BLAS_THREADS"
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
_log = logging.getLogger(__name__)


class BlasLibrary(Protocol):
    """A loaded BLAS library, as threadpoolctl represents it."""

    @property
    def num_threads(self) -> int | None:
        """The number of threads in effect for the calling thread; None if it is unknown."""

    def set_num_threads(self, num_threads: int) -> object:
        """Set the number of threads, unless another thread holds threadpoolctl's control."""


class BlasThreads:
    """The number of BLAS threads of a process with the environment variables `environment`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()  # guards writes of the attributes below
        self._is_limited = False
        self._libraries: Sequence[BlasLibrary] | None = None  # None until they are looked up
        self._is_single_at_start = False  # what the environment says, read by the first session

    def limit(self) -> None:
        """Limit BLAS to the number of threads that the environment chooses; once, then return.

        Raises InvalidArgumentError if RUNSTEP_BLAS_THREADS is neither "host" nor a number ≥ 0.
        """
        with self._lock:
            if self._is_limited:
                return
            wanted = _wanted_threads(self._environment)
            self._is_single_at_start = _is_single_in(self._environment)
            if wanted and not (wanted == 1 and self._is_single_at_start):
                self._libraries = _loaded_libraries()
                _set_num_threads(self._libraries, wanted)
            self._is_limited = True

    def is_single(self) -> bool:
        """Return whether BLAS runs in the calling thread only; False if that is not known."""
        if self._libraries is None:
            if self._is_single_at_start:
                return True
            with self._lock:
                if self._libraries is None:
                    self._libraries = _loaded_libraries()
        libraries = self._libraries
        return bool(libraries) and all(library.num_threads == 1 for library in libraries)


def _wanted_threads(environment: Mapping[str, str]) -> int:
    """Return the number of threads that RUNSTEP_BLAS_THREADS chooses; 0 means the host's."""
    text = environment.get(SWITCH, "").strip().lower()
    if text in ("", "host"):
        return 0 if text else 1
    if not text.isdecimal():
        raise InvalidArgumentError(f'{SWITCH} must be "host" or a number of threads, got "{text}"')
    return int(text)


def _is_single_in(environment: Mapping[str, str]) -> bool:
    """Return whether every BLAS library that reads `environment` starts with one thread."""
    otherwise = environment.get("OMP_NUM_THREADS")
    return all((environment.get(name) or otherwise) == "1" for name in _BLAS_VARIABLES)


def _loaded_libraries() -> Sequence[BlasLibrary]:
    import threadpoolctl  # takes 3 to 10 ms, and the server does not use it

    controller = threadpoolctl.ThreadpoolController().select(user_api="blas")
    libraries: Sequence[BlasLibrary] = controller.lib_controllers
    if not libraries:
        _log.debug("no known BLAS library is loaded; its number of threads is unchanged")
    return libraries


def _set_num_threads(libraries: Sequence[BlasLibrary], num_threads: int) -> None:
    """Set the number of threads in a thread of its own.

    The thread that sets the number of OpenBLAS is, until it ends, the only one that may change it
    through threadpoolctl (≥ 3.8). A calling thread that lives on would take this from the host.
    """
    changed = [library for library in libraries if library.num_threads != num_threads]
    if not changed:
        return

    def work() -> None:
        for library in changed:
            library.set_num_threads(num_threads)

    setter = threading.Thread(target=work, name="tf_blas_threads")
    setter.start()
    setter.join()
    _log.debug("BLAS threads: %s", [library.num_threads for library in libraries])


_process = BlasThreads(os.environ)


def limit_blas_threads() -> None:
    """Limit BLAS to one thread, or as RUNSTEP_BLAS_THREADS says; later calls change nothing.

    Raises InvalidArgumentError if RUNSTEP_BLAS_THREADS is neither "host" nor a number ≥ 0.
    """
    _process.limit()


def is_blas_single() -> bool:
    """Return whether BLAS runs in the calling thread only; False if that is not known."""
    return _process.is_single()
