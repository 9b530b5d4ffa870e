"""What the pipeline keeps: Postgres tables, and files in a folder or an S3 prefix.

Nothing here knows Dagster.
"""
