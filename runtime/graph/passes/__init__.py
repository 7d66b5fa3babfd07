"""Passes over the graph of a step; `optimizer` lists them in the order in which they run."""
