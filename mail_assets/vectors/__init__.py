"""Vector buckets: one protocol, one filter language, one module per backend.

Nothing here knows Dagster or where the vectors come from.
"""
