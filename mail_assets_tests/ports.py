"""Ports for servers that have to be told theirs, because another process starts them."""

import itertools
import os
import socket

#: The system never gives these to a socket that asks for any port, as most of our servers and all
#: clients do (Linux: from 32768 on). Workers and other runs on the machine begin apart.
_PORTS = itertools.count(10_000 + 37 * os.getpid() % 20_000)


def find_free_port() -> int:
    """Return a port of the loopback that nobody uses, and that stays free until it is used."""
    for port in _PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("ports have no end")
