"""Search: request, legs, fusion, response; and the op that serves test queries.

Only serve.py knows Dagster. Each leg ranks messages and says which chunks speak for them.
"""
