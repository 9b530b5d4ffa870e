"""The steps of the pipeline, one function per asset: plain functions without Dagster.

A step takes the workspace and a list's month, brings the partition up to date with its inputs, and
returns an Outcome. A second run on the same inputs writes nothing. A step that is killed leaves
either the old partition or the new one.
"""
