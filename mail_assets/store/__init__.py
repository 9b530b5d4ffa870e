"""Store the pipeline's files in a folder or under an S3 prefix; no module uses Dagster."""
