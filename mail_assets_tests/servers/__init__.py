"""Real servers from Debian's packages on the loopback, as in production.

Tests that need them are marked `servers` (`pytest -m servers`). If a program is not installed, they
are skipped and say why.
"""
