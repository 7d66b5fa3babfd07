"""One process of a server: what it composes, its ports, and how it drains and ends."""
