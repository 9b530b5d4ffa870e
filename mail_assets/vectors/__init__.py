"""Vector buckets: one protocol, one filter language, one module per backend (and one beside it
for its rows, its table or its client).

Nothing here knows Dagster or where the vectors come from.
"""
