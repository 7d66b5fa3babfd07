"""Inference engines as child processes that are measured in turns.

`worker.py` is the program of a child, which runs in the interpreter that has its engine;
`worker_process.py` is the parent's side. An engine is one file with a class in `ENGINES` of the
worker.
"""
