"""Clusters at run time: when they are compiled, which form holds, and what runs instead."""
