-- What files of embeddings are for. Used by tables/embedding_files.py.

-- name: fingerprints
-- Of the encoders of all indexes that were not retired.
select distinct fingerprint from indexes

-- name: chunked_at
-- When the chunks of each month last changed.
select list, month, updated_at from partitions where asset = 'chunks'
