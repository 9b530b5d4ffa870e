"""The asset checks. Blocking ones stop a run if everything downstream would be wrong; others warn.

https://docs.dagster.io/guides/test/asset-checks
"""
