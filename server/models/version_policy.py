"""Policies that choose which versions of a model's folder are served.

TF: tensorflow_serving/sources/storage_path/file_system_storage_path_source.proto
    (ServableVersionPolicy)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection


@dataclasses.dataclass(frozen=True, slots=True)
class LatestVersions:
    """Serve the `count` highest version numbers."""

    count: int = 1

    def choose(self, present: Collection[int]) -> set[int]:
        """Return the version numbers to serve, a part of `present`."""
        return set(sorted(present, reverse=True)[: max(self.count, 1)])


@dataclasses.dataclass(frozen=True, slots=True)
class AllVersions:
    """Serve every version."""

    def choose(self, present: Collection[int]) -> set[int]:
        """Return the version numbers to serve, a part of `present`."""
        return set(present)


@dataclasses.dataclass(frozen=True, slots=True)
class SpecificVersions:
    """Serve the versions in `versions` that are present."""

    versions: tuple[int, ...]

    def choose(self, present: Collection[int]) -> set[int]:
        """Return the version numbers to serve, a part of `present`."""
        return set(present) & set(self.versions)


@dataclasses.dataclass(frozen=True, slots=True)
class EitherVersions:
    """Serve the versions of two policies, while a model changes from `old` to `new`."""

    old: VersionPolicy
    new: VersionPolicy

    def choose(self, present: Collection[int]) -> set[int]:
        """Return the version numbers to serve, a part of `present`."""
        return self.old.choose(present) | self.new.choose(present)


VersionPolicy = LatestVersions | AllVersions | SpecificVersions | EitherVersions
