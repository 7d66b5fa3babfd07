"""Executors: they run a pruned graph."""
