from server.sessions.clock import Clock, rfc3339


def test_wall_time_of_an_instant_is_rfc3339_in_utc():
    clock = Clock(monotonic=lambda: 50.0, wall=lambda: 1_700_000_000.0)
    assert rfc3339(clock.wall_at(60.5)) == "2023-11-14T22:13:30.500Z"
