"""A clock that only a test moves."""

from server.sessions.clock import Clock

WALL_OFFSET = 1_700_000_000.0


class FakeClock:
    """`now` seconds since the start; `clock` is what the code under test gets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.clock = Clock(monotonic=lambda: self.now, wall=lambda: WALL_OFFSET + self.now)
