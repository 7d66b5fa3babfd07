"""The gRPC endpoints, which translate calls for `server.steps` and the services."""
