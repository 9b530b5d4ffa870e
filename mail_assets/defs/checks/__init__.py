"""The asset checks, one module an asset: what must hold before the next asset is made, and what
deserves a look.

Blocking checks stop the run where everything downstream would be wrong; the others warn.
https://docs.dagster.io/guides/test/asset-checks
"""
