"""Which of two measured forms of a short run is kept."""

from __future__ import annotations

import pytest

from runtime.clusters.running import run_width


@pytest.fixture(params=[False, True], ids=["waited for", "shared"])
def is_shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(run_width, "_is_shared", [False])
    if request.param:
        run_width.share_processors_among_runs()
    return bool(request.param)


def test_few_weights_are_never_tried_with_helpers(is_shared: bool) -> None:
    assert not run_width.may_pay(run_width.WIDE_BYTES, 900e-6)


@pytest.mark.parametrize(
    ("narrow_seconds", "waited_for", "shared"),
    [
        (20e-6, True, False),  # helpers spin for longer than they could save
        (32e-6, True, True),
    ],
)
def test_what_is_tried(
    is_shared: bool, narrow_seconds: float, waited_for: bool, shared: bool
) -> None:
    expected = shared if is_shared else waited_for
    assert run_width.may_pay(run_width.WIDE_BYTES + 1, narrow_seconds) is expected


@pytest.mark.parametrize(
    ("narrow_seconds", "wide_seconds", "waited_for", "shared"),
    [
        (120e-6, 60e-6, True, True),
        (80e-6, 26e-6, True, True),
        (120e-6, 90e-6, True, False),  # the gain is too small in proportion
        (32e-6, 19e-6, True, False),  # and here beside what the threads spin
        (226e-6, 190e-6, True, False),  # an LSTM
        (120e-6, 110e-6, False, False),  # which may be a matter of chance
        (120e-6, 130e-6, False, False),
    ],
)
def test_what_is_kept(
    is_shared: bool, narrow_seconds: float, wide_seconds: float, waited_for: bool, shared: bool
) -> None:
    expected = shared if is_shared else waited_for
    assert run_width.pays(narrow_seconds, wide_seconds, wide_threads=2) is expected


def test_helpers_spin_for_longer_where_the_program_waits(is_shared: bool) -> None:
    assert run_width.spin_seconds() == pytest.approx(50e-6 if is_shared else 200e-6)
