"""The kinds of numbers in the settings, and the largest of each, which configs/server.yaml states.

A setting has its smallest number itself. None may be infinite: the settings of several processes
are passed as JSON, and clocks, threads and gRPC take no such number.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MAX_SECONDS = 365 * 24 * 3600
MAX_BYTES = 1 << 50
MAX_COUNT = (1 << 31) - 1  # what gRPC takes, too
MAX_THREADS = 1024  # of one pool, which starts them at once
MAX_VERSION = (1 << 63) - 1  # TF: an int64 of model.proto

Amount = Annotated[float, Field(allow_inf_nan=False, le=MAX_COUNT)]
Seconds = Annotated[float, Field(allow_inf_nan=False, le=MAX_SECONDS)]
Milliseconds = Annotated[int, Field(le=MAX_SECONDS * 1000)]
Bytes = Annotated[int, Field(le=MAX_BYTES)]
Count = Annotated[int, Field(le=MAX_COUNT)]
Threads = Annotated[int, Field(le=MAX_THREADS)]
Version = Annotated[int, Field(ge=0, le=MAX_VERSION)]
