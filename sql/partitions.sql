-- What each partition of each asset was made from. Used by tables/partitions.py.

-- name: lock
-- Held by the session, so that two runs of one partition follow each other.
select pg_advisory_lock(hashtextextended(
           concat_ws('|', %(asset)s::text, %(list)s::text, %(month)s::text), 0))

-- name: try_lock
-- As lock, without waiting: whether it could be had.
select pg_try_advisory_lock(hashtextextended(
           concat_ws('|', %(asset)s::text, %(list)s::text, %(month)s::text), 0))

-- name: unlock
select pg_advisory_unlock(hashtextextended(
           concat_ws('|', %(asset)s::text, %(list)s::text, %(month)s::text), 0))

-- name: read
select inputs, digest, counts
  from partitions
 where asset = %(asset)s and list = %(list)s and month = %(month)s

-- name: read_whole
-- Of an asset without partitions.
select inputs, digest, counts
  from partitions
 where asset = %(asset)s and list is null

-- name: write
-- Counts stay those of the last run that did something.
insert into partitions (asset, list, month, inputs, digest, counts)
values (%(asset)s, %(list)s, %(month)s, %(inputs)s, %(digest)s, %(counts)s)
on conflict (asset, list, month) do update
   set inputs = excluded.inputs, digest = excluded.digest, counts = excluded.counts,
       updated_at = now()
 where (partitions.inputs, partitions.digest) is distinct from (excluded.inputs, excluded.digest)
    or %(rewritten)s

-- name: forget_index
-- The months that were made for an index that is no more are made of nothing.
update partitions
   set inputs = ''
 where asset = %(asset)s and right(inputs, length(%(index_name)s) + 1) = ' ' || %(index_name)s

-- name: of_lists
-- All assets of all months of some lists.
select list, month, asset, inputs, digest, counts
  from partitions
 where list = any(%(lists)s)
