"""The steps of the chain, one module per asset: plain functions, without Dagster.

A step takes a connection, a month of a list and what it needs of the outside world, makes
the partition converge, and says what it did. Run again with nothing changed it writes
nothing; killed at any point it leaves the old partition or the new one.
"""
