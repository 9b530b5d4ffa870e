"""Vector buckets as LanceDB tables in a folder or on S3-like storage."""
