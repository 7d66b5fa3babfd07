"""The part of the HTTP side that is FastAPI, which is imported late."""
