"""The steps of the pipeline, one module per asset: plain functions without Dagster.

A step takes the workspace, a list's month and what else it needs, makes the partition equal to its
inputs, and returns an Outcome. Run again with nothing changed it writes nothing; killed at any
point it leaves the old partition or the new one. What is done to a whole index or by people's
request has modules of its own: index_lifecycle, reconcile_index, forget_messages.
"""
