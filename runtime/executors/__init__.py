"""Executors: the classes that run a pruned graph."""
