"""The files that the pipeline keeps, in a folder or under an S3 prefix; without Dagster."""
