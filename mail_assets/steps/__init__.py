"""The steps of the pipeline, one function per asset: plain functions without Dagster.

A step takes the workspace and a list's month, makes the partition equal to its inputs, and returns
an Outcome. Run again with nothing changed it writes nothing. Killed at any point it leaves the old
partition or the new one.
"""
