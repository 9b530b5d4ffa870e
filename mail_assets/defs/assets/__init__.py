"""The assets, one module each: a thin function over a step of the same name.

What lives here: which months a run makes, what the UI shows of them. What does not: any
work (steps/). https://docs.dagster.io/guides/build/assets
"""
