"""What runs a pruned graph."""
