"""An index of words as a LanceDB table in a folder or on S3-like storage."""
