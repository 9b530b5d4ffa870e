"""Free ports for servers that another process starts, and that need a fixed port."""

import itertools
import os
import socket

#: Ports below the range for sockets that ask for any port, as most of our servers and all clients
#: do (Linux: from 32768). Workers and other runs on the machine start at different ports.
_PORTS = itertools.count(10_000 + 37 * os.getpid() % 20_000)


def find_free_port() -> int:
    """Return a free port of the loopback, which is given to nobody else until it is used."""
    for port in _PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("ports have no end")
