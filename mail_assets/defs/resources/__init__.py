"""The outside world as Dagster resources: thin, lazy, and opened by whoever needs them.

What lives here: configuration, and one way to open each thing. What does not: the things
themselves (store/, sources/, encoding/, vectors/, search/), which know nothing of Dagster.
https://docs.dagster.io/guides/build/external-resources
"""
