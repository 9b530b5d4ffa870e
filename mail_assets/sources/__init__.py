"""Sources of monthly archives: a folder, an HTTP server, an S3 prefix, single messages.

No module here imports Dagster or uses PostgreSQL.
"""
