"""The REST front: translates HTTP requests for `server.steps` and the services."""
