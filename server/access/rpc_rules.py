"""What each gRPC call requires of its caller: one table.

A call that no row names requires the role `predict`.
"""

from __future__ import annotations

import functools
import re

from server.access.http_rules import Need

# (pattern of `/service/method`, need). The first matching row counts.
_RULES: tuple[tuple[re.Pattern[str], Need], ...] = (
    (re.compile(r"/tensorflow\.MasterService/"), Need.GRAPHS),
    # For load balancers and orchestrators, which have no keys.
    (re.compile(r"/grpc\.health\."), Need.NOTHING),
    # The same for every server.
    (re.compile(r"/grpc\.reflection\."), Need.NOTHING),
    # They act on the session in which the version serves everybody.
    (re.compile(r"/tensorflow\.serving\.SessionService/"), Need.SESSIONS),
    (
        re.compile(r"/tensorflow\.serving\.PredictionService/GetModelMetadata\Z"),
        Need.KNOWN,
    ),
    # Whether a reload is allowed is decided by server/models/administration.py.
    (re.compile(r"/tensorflow\.serving\.ModelService/"), Need.KNOWN),
    (re.compile(r"/inference\.GRPCInferenceService/Server(?:Live|Ready)\Z"), Need.NOTHING),
    (re.compile(r"/inference\.GRPCInferenceService/Model(?:Stream)?Infer\Z"), Need.PREDICT),
    # Descriptions; who may change something is decided by server/models/administration.py.
    (re.compile(r"/inference\.GRPCInferenceService/"), Need.KNOWN),
    (re.compile(r""), Need.PREDICT),
)


@functools.lru_cache(maxsize=256)  # there are fewer methods, but clients may name others
def rpc_need_of(path: str) -> Need:
    """Return what a call of `/service/method` requires."""
    return next(need for pattern, need in _RULES if pattern.match(path))
