"""The Open Inference Protocol over HTTP: `/v2/…`."""
