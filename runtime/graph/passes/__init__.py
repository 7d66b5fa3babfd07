"""Passes over the graph of a step; `optimizer` lists them in their order."""
