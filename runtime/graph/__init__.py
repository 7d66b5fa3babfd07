"""Graphs and the passes over them."""
