"""Runstep's runtime: graphs, sessions and kernels. Programs use `runtime.api`."""
