"""The gRPC port of the background process, for predictions of low priority.

A connection of gRPC can't be handed over, and what is passed on is received and copied in the
process that answers the normal predictions (`background_calls.py`). A client that knows that its
predictions are of low priority connects to `grpc.background_port` instead.

The port is reserved by the first process, so that its number stays when the background process is
replaced. It has the methods of predictions and of metadata. A call without the metadata
`x-priority` has the first priority whose requests the background process answers.
"""

from __future__ import annotations

from collections.abc import Collection

from runtime.errors import FailedPreconditionError, InvalidArgumentError
from server.background.background_calls import called_version
from server.background.request_place import RequestPlace
from server.models.manager import ModelManager
from server.rpc.call import PRIORITY_METADATA, CallContext


class BackgroundPort:
    """What the port answers: calls of some `priorities`, for models whose signatures only read.

    Guarantees: used from one event loop.
    """

    def __init__(
        self, priorities: Collection[str], models: ModelManager, place: RequestPlace
    ) -> None:
        self._priorities = priorities
        self._models = models
        self._place = place

    async def answer(self, path: str, data: bytes, context: CallContext) -> None:
        """Return if this process may answer a call that was admitted.

        Raises InvalidArgumentError if its priority is another one, and FailedPreconditionError if
        predictions of the model change or keep state, which all other processes would not see.
        """
        priority = context.metadata[PRIORITY_METADATA]
        if priority not in self._priorities:
            raise InvalidArgumentError(
                f"This port is for calls of priority {', '.join(sorted(self._priorities))}, "
                f"got {priority!r}; others belong to the server's gRPC port"
            )
        version = called_version(self._models, path, data)
        if version is not None and not await self._place.only_reads(version):
            raise FailedPreconditionError(
                f"Predictions of model {version.name} may change or keep state; they belong to the "
                "server's gRPC port"
            )
