"""All attacks, by the section of docs/robustness.md that they belong to."""

from __future__ import annotations

from tests.attacks import access, bodies, connections, memory, models, time
from tests.attacks.attack import Attack

SECTIONS: dict[str, tuple[Attack, ...]] = {
    "Connections": connections.ATTACKS,
    "Bodies and messages": bodies.ATTACKS,
    "Memory": memory.ATTACKS,
    "Time": time.ATTACKS,
    "Access": access.ATTACKS,
    "Models and processes": models.ATTACKS,
}
ATTACKS = tuple(attack for section in SECTIONS.values() for attack in section)
