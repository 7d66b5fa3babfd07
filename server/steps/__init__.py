"""Run every step between the codec of a REST or gRPC endpoint and a session."""
