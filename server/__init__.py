"""The server, which offers models and sessions over HTTP and gRPC."""
