"""Where monthly archives come from: a folder, an HTTP server, an S3 prefix.

Nothing here knows Dagster, Postgres or what is inside an archive beyond its first bytes.
"""
