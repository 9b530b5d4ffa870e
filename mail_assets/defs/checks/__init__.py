"""The asset checks: blocking ones stop a run, others warn.

A check is blocking if everything downstream would be wrong.

https://docs.dagster.io/guides/test/asset-checks
"""
