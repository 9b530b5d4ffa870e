"""LanceDB tables in a folder or on S3-like storage: the common part of both Lance indexes."""

from mail_assets.environment import set_default

# LanceDB logs to standard error and reads this variable once, at import. Two modules warn that an
# index of similar vectors has fewer partitions than planned, which is harmless; other warnings are
# shown. The user's own value stays.
set_default(
    "LANCEDB_LOG", "warn,lance_index::vector::kmeans=error,lance::index::vector::builder=error"
)
