"""Sockets of our servers."""

from __future__ import annotations

import errno
import socket

from sire_core.errors import ConfigurationError


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `ConfigurationError` with advice if the port is in use."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise ConfigurationError(
            f"Port {port} of {host} is in use, perhaps by another sire. Name another port, or 0 for one that is free."
        ) from error
