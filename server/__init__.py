"""The server: models and sessions over HTTP and gRPC."""
