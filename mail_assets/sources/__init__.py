"""Sources of monthly archives: a folder, an HTTP server, an S3 prefix, single messages.

Nothing here knows Dagster, Postgres or the content of an archive beyond its first bytes.
"""
