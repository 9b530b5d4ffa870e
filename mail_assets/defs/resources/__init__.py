"""The outside world as Dagster resources: configuration, and one way to open each thing.

They are thin: what they open (store/, sources/, encoding/, vectors/, search/) knows no Dagster.
https://docs.dagster.io/guides/build/external-resources
"""
