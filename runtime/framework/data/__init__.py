"""Datasets, their iterators, the functions they apply, and their conversion to graphs."""
