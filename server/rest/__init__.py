"""The REST endpoints, which translate HTTP requests for `server.steps` and the services."""
