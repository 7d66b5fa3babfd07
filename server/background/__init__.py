"""The background process: it answers what is sent with a low priority, in its own interpreter.

A server's Python runs under one lock. A request of low priority, however little its step takes of
it, delays those of normal priority by what its body, its head and its response take. So the first
such request on a connection moves the connection, which a Unix socket can carry, to one more
process of the host at nice 19: head, body, step and response are computed there.

`request_place.py` says which requests belong there, `moved_connections.py` hands connections over
and receives them, `background_process.py` starts the process and replaces it, and `front_host.py`
is what a server of one process knows of it. The rest is what several processes on one host have
(`server/processes`).
"""
