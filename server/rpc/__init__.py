"""gRPC services: translate and delegate."""
