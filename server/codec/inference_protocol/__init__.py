"""The Open Inference Protocol's inference requests and responses: JSON, binary and messages."""
