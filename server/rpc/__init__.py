"""The gRPC front: translates calls for `server.steps` and the services."""
