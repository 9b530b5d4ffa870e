-- State of each partition of each asset, and the checks that have run on it. Used by
-- tables/partitions.py.

-- name: lock
-- Held by the session, so that runs of one partition run one after the other.
select pg_advisory_lock(hashtextextended(
           concat_ws('|', %(asset)s::text, %(list)s::text, %(month)s::text), 0))

-- name: try_lock
-- Like lock, without waiting; returns whether it was free.
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
-- For assets without partitions.
select inputs, digest, counts
  from partitions
 where asset = %(asset)s and list is null

-- name: write
-- Keeps the counts of the last run that changed the partition.
insert into partitions (asset, list, month, inputs, digest, counts)
values (%(asset)s, %(list)s, %(month)s, %(inputs)s, %(digest)s, %(counts)s)
on conflict (asset, list, month) do update
   set inputs = excluded.inputs, digest = excluded.digest, counts = excluded.counts,
       updated_at = now()
 where (partitions.inputs, partitions.digest) is distinct from (excluded.inputs, excluded.digest)
    or %(rewritten)s

-- name: outdate
-- Gives some assets of a month empty inputs and forgets the sources of commit links, so that all are
-- made again: rows that they were made from have been repaired.
with sources as (
    delete from commit_link_sources where (asset, list, month) = (%(asset)s, %(list)s, %(month)s))
update partitions
   set inputs = ''
 where asset = any(%(made)s) and list = %(list)s and month = %(month)s

-- name: forget_index
-- Gives the months of a removed index empty inputs.
update partitions
   set inputs = ''
 where asset = %(asset)s and right(inputs, length(%(index_name)s) + 1) = ' ' || %(index_name)s

-- name: of_lists
-- All assets of all months of some lists.
select list, month, asset, inputs, digest, counts
  from partitions
 where list = any(%(lists)s)

-- name: unchecked
-- Months that changed since a check passed, or where it never passed.
select p.list, p.month, p.updated_at
  from partitions p
  left join month_checks c
    on c.asset = %(asset)s and c.check_name = %(name)s and c.list = p.list and c.month = p.month
   and c.updated_at = p.updated_at and c.passed
 where p.asset = %(months_of)s and p.month is not null and c.asset is null
 order by p.list, p.month

-- name: versions
-- Last change of the named months, or of all months.
select list, month, updated_at
  from partitions
 where asset = %(months_of)s and month is not null
   and (%(lists)s::text[] is null
        or (list, month) in (select * from unnest(%(lists)s::text[], %(months)s::text[])))
 order by list, month

-- name: record_checked
insert into month_checks (asset, check_name, list, month, updated_at, passed)
select %(asset)s, %(name)s, *
  from unnest(%(lists)s::text[], %(months)s::text[], %(versions)s::timestamptz[],
              %(passed)s::boolean[])
on conflict (asset, check_name, list, month)
   do update set (updated_at, passed) = (excluded.updated_at, excluded.passed)

-- name: checked
-- Checks that have run on the present state of some lists' months, and whether they passed.
select c.list, c.month, c.asset, c.check_name, c.passed
  from month_checks c
  join partitions p using (asset, list, month, updated_at)
 where c.list = any(%(lists)s)

-- name: by_index
-- For the rest of a transaction: the first run fills tables that the planner knows nothing of, and
-- each batch must be looked up by indexes.
select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)
