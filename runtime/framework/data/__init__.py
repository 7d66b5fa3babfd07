"""Datasets: their iterators, the functions that datasets apply, and conversion to graphs."""
