"""Connections of the HTTP port: what they wait for, how long they may, and TLS around them."""
