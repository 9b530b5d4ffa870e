"""Vector buckets: one contract, one filter language, one package for each backend.

Nothing here knows Dagster or where the vectors come from.
"""
