"""Real servers of Debian's packages on the loopback: what the pipeline meets in production.

What lives here: starting and stopping them, a proxy that disturbs a connection, and the tests that
need them (`pytest -m servers`). Where a program is not installed these are skipped, and say why.
"""
