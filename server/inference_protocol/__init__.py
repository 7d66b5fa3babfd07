"""The Open Inference Protocol, independent of the transport."""
