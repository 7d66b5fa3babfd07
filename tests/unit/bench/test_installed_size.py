"""Which distributions an installation requires."""

from __future__ import annotations

from bench.installed_size import distribution_bytes, required

REQUIRES = {
    "runstep": ["numpy>=2", "engine<2 ; extra == 'fast'", "pytest ; extra == 'test'"],
    "numpy": None,
    "engine": ["Flat_Buffers", "numpy", "old-shim ; python_version < '3'", "web[tls]"],
    "flat-buffers": [],
    "web": ["certificates ; extra == 'tls'"],
    "certificates": ["web"],
}


def test_requirements_are_followed_with_their_extras_and_markers() -> None:
    assert required("runstep", (), REQUIRES.__getitem__) == {"numpy"}
    assert required("runstep", ("fast",), REQUIRES.__getitem__) == {
        "numpy", "engine", "flat-buffers", "web", "certificates",
    }  # fmt: skip


def test_an_installed_distribution_has_a_size() -> None:
    assert distribution_bytes("numpy") > 10_000_000
