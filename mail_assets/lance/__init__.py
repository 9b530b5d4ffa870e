"""LanceDB tables in a folder or on S3-like storage: what the indexes that are such tables share."""

from mail_assets.environment import set_default

# LanceDB logs to standard error, and reads this variable once, when it is imported. That vectors
# are alike, so that an index of them has fewer partitions than planned, loses nothing; what else
# it warns of is shown. A value of the user's own stays.
set_default(
    "LANCEDB_LOG", "warn,lance_index::vector::kmeans=error,lance::index::vector::builder=error"
)
