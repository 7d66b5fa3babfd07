"""Datasets, their iterators, and the graphs and functions that they are made of."""
