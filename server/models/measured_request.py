"""Count a request of a served model, and measure it if it succeeds, for every front alike.

TF: tensorflow_serving/model_servers/prediction_service_impl.cc (RecordRequestLatency)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from runtime.errors import Code, OpError
from server.models.inference_service import InferenceService

T = TypeVar("T")


async def measured(
    service: InferenceService, name: str, api: str, entrypoint: str, answer: Awaitable[T]
) -> T:
    """Await `answer`, and count the request by its status code.

    `api` and `entrypoint` are as in `ServingMetrics.requests`.
    """
    started = time.perf_counter()
    code = Code.UNKNOWN
    try:
        content = await answer
        code = Code.OK
        return content
    except OpError as error:
        code = error.code
        raise
    except asyncio.CancelledError:
        code = Code.CANCELLED
        raise
    finally:
        metrics = service.metrics
        if code is Code.OK:
            metrics.requests(name, api, entrypoint).add((time.perf_counter() - started) * 1e6)
        else:
            metrics.request_failed(name, code.name)
