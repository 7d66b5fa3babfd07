"""Which priority and which thread pool the limits of a caller allow to a step."""

from __future__ import annotations

from runtime.api import DirectSession, RuntimeSession
from server.access.access_errors import DeniedError
from server.steps.priorities import Priorities, Priority
from server.steps.step_request import StepRequest


def allowed_priority(
    priorities: Priorities,
    request: StepRequest,
    session: RuntimeSession,
    priority: Priority | None,
) -> Priority | None:
    """Return the priority of a step, or the caller's default in place of the server's.

    `priority` is None if the client chose a pool of the session. Raises DeniedError if the caller
    may not use the priority or the pool.
    """
    usage = request.caller.usage
    pools = None if usage is None else priorities.pools_of(usage.limits)
    if usage is None or pools is None:
        return priority
    if priority is None:
        name = _chosen_pool(request, session)
    else:
        if request.priority is None:
            priority = priorities.default_of(usage.limits)
        usage.check_priority(priority.name)
        name = priority.pool.name
    if name not in pools:
        raise DeniedError(
            f"{request.caller.owner} may not use thread pool {name!r}; it may use "
            f"{', '.join(sorted(pools)) or 'none'}",
            "pool",
        )
    return priority


def _chosen_pool(request: StepRequest, session: RuntimeSession) -> str:
    """Return the name of the pool that a client chose by its index.

    It is "" if the step runs in the caller's thread, or if the session has no such pool.
    """
    index = 0 if request.options is None else request.options.inter_op_thread_pool
    pools = session.thread_pools if isinstance(session, DirectSession) else ()
    return pools[index].name if 0 <= index < len(pools) else ""
