"""Attacks on a running server as data: docs/robustness.md's table, its tests and its figures."""
