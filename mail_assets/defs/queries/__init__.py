"""Test queries in Dagster: the op that asks them, and what the UI shows of the responses."""
