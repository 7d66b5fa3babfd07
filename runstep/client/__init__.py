"""Clients of a Runstep server over HTTP, blocking and asyncio, on one core without sockets."""
