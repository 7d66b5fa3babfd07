"""The report of a run as text: figures, errors by code and a histogram of the latencies."""

from __future__ import annotations

from collections.abc import Iterator

from server.commands.load.callers import Measured
from server.commands.load.target import Size

_ROWS = 16  # of the histogram
_BLOCKS = 40  # of its longest bar
_PERCENTILES = (50, 90, 99)
_BUSY_CLIENT = 0.9  # of a core, above which the load generator limits the rate


def describe_size(size: Size) -> str:
    """Return how the target is loaded, in words."""
    callers = f"{size.callers} caller{'' if size.callers == 1 else 's'}"
    loop = "each calls again when it is answered"
    if size.rate is not None:
        loop = f"{size.rate:g} calls a second, measured from the time each is due"
    return f"{size.seconds:g} s, {callers}; {loop}"


def describe(measured: Measured, size: Size) -> Iterator[str]:
    """Yield the lines of the report."""
    failed = measured.failed.total()
    yield (
        f"{measured.requests} requests in {measured.seconds:.2f} s: "
        f"{measured.requests / max(measured.seconds, 1e-9):.1f} a second; {failed} failed"
    )
    for code, count in measured.failed.most_common():
        yield f"  {count} × {code}: {measured.messages[code]}"
    yield from _incomplete(measured, size)
    if not measured.latencies.count:
        return
    latencies = measured.latencies
    figures = [f"p{percent} {duration(latencies.percentile(percent))}" for percent in _PERCENTILES]
    yield f"latency: {', '.join(figures)}, max {duration(latencies.longest)}"
    yield ""
    yield from _histogram(measured)


def _incomplete(measured: Measured, size: Size) -> Iterator[str]:
    if measured.seconds < 0.99 * size.seconds:
        yield f"stopped after {measured.seconds:.1f} s of {size.seconds:g} s"
    if measured.under_way:
        yield f"{measured.under_way} requests were still under way and are not counted"
    if measured.unsent:
        yield (
            f"{measured.unsent} requests that were due were not sent, because every caller was "
            "waiting: the target is too slow for this rate, or needs more --callers"
        )
    if measured.client > _BUSY_CLIENT:
        yield (
            f"the load generator itself used {measured.client:.0%} of a core, which may have "
            "limited the rate"
        )


def _histogram(measured: Measured) -> Iterator[str]:
    rows = list(measured.latencies.ranges(_ROWS))
    most = max(count for _, _, count in rows)
    for begin, end, count in rows:
        blocks = round(_BLOCKS * count / most)
        mark = "#" * blocks or ("." if count else "")
        yield f"{duration(begin):>9} to {duration(end):>9}  {mark:<{_BLOCKS}} {count}"


def duration(seconds: float) -> str:
    """Return a time with three digits and its unit."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    if seconds >= 1e-3:
        return f"{_three(seconds * 1e3)} ms"
    return f"{_three(seconds * 1e6)} µs"


def _three(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
