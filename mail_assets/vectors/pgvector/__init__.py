"""Vector buckets as tables of a Postgres with pgvector, in the schema `vectors`."""
