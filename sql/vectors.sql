-- The manifest of the vector index: the keys of each partition. Used by tables/indexes.py.

-- name: read
select key, digest, written
  from vectors
 where index_name = %(index_name)s and list = %(list)s and month = %(month)s

-- name: mark_intended
insert into vectors (index_name, list, month, key, digest, written)
select %(index_name)s, %(list)s, %(month)s, key, digest, false
  from unnest(%(keys)s::text[], %(digests)s::bytea[]) as intended (key, digest)
on conflict (index_name, key) do update
   set digest = excluded.digest, written = false

-- name: mark_written
update vectors set written = true
 where index_name = %(index_name)s and list = %(list)s and month = %(month)s and not written

-- name: mark_lost
-- Whole corpus: an index is created, which has nothing of what was written into one of its name. The
-- months that had something there are made of nothing.
with lost as (
    update vectors set written = false
     where index_name = %(index_name)s and written
    returning list, month)
update partitions p
   set inputs = ''
  from (select distinct list, month from lost) l
 where (p.asset, p.list, p.month) = ('vectors', l.list, l.month)
   and right(p.inputs, length(%(index_name)s) + 1) = ' ' || %(index_name)s

-- name: drop_keys
delete from vectors where index_name = %(index_name)s and key = any(%(keys)s)

-- name: remove
-- Whole corpus: an index is retired.
delete from vectors where index_name = %(index_name)s

-- name: count
-- Whole corpus: somebody lists the indexes, or promotes one.
select count(*) from vectors where index_name = %(index_name)s and written

-- name: count_by_month
-- The keys of each month of some lists, and those that are written.
-- Whole corpus: a backfill asks once for all of its months.
select list, month, count(*), count(*) filter (where written)
  from vectors
 where index_name = %(index_name)s and list = any(%(lists)s)
 group by list, month

-- name: complete
-- Whether an index has a vector for every chunk.
-- Whole corpus: indexes are compared.
select exists (select from vectors where index_name = %(index_name)s and written)
   and not exists (
       select from chunks c
        where not exists (
              select from vectors v
               where v.index_name = %(index_name)s and v.key = c.key and v.written))
