"""Whether `server`, `runtime` and `protos` are Runstep's, or others of the same names.

The names are common, and Python takes the first it finds: a folder `server` in the folder from
which a program starts, or a package of another project in the same environment.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib

NAMES = ("protos", "runtime", "server")
_OWN = pathlib.Path(__file__).resolve().parents[1]  # where Runstep's packages are


class ShadowedError(ImportError):
    """Python finds another package under a name of Runstep's."""


def check_names(names: tuple[str, ...] = NAMES) -> None:
    """Raise ShadowedError, which says what shadows what, if a name leads elsewhere."""
    for name in names:
        spec = importlib.util.find_spec(name)
        own = _OWN / name / "__init__.py"
        if spec is None:
            raise ShadowedError(f"package {name} is missing: expected {own}; install runstep again")
        found = pathlib.Path(spec.origin or next(iter(spec.submodule_search_locations or ["?"])))
        if not (found.exists() and own.exists() and os.path.samefile(found, own)):
            raise ShadowedError(
                f"{found} shadows Runstep's package {name} ({own}): start from another folder, or "
                "install runstep in an environment of its own"
            )
