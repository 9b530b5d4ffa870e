"""The assets, one module each: a thin function over a step (steps/), and the metadata in the UI.

https://docs.dagster.io/guides/build/assets
"""
