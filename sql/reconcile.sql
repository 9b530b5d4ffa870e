-- Compares the keys of a whole index with its manifest and its expected keys. Used by
-- indexes/reconcile.py. The views expected_keys and intended_keys are of vectors or of words.

-- name: clear
drop table if exists pg_temp.bucket_keys, pg_temp.differences

-- name: expect_vectors
create or replace temporary view expected_keys as
select key, list, month from chunks

-- name: intend_vectors
create or replace temporary view intended_keys as
select index_name, key, list, month, written from vectors

-- name: expect_words
create or replace temporary view expected_keys as
select message_key(list, month, message_id, variant, content_hash) as key, list, month
  from messages

-- name: intend_words
create or replace temporary view intended_keys as
select index_name, key, list, month, written from words

-- name: stage
create temporary table bucket_keys (key text collate "C" not null)

-- name: copy
copy bucket_keys (key) from stdin

-- name: compare
-- `foreign` is right even while runs write, because a key enters the manifest before the bucket, and
-- the bucket was listed first. Keys written since the listing count as missing; writing them once more
-- does no harm.
create temporary table differences as
select coalesce(c.key, v.key, b.key) as key,
       coalesce(c.list, v.list) as list, coalesce(c.month, v.month) as month,
       case when c.key is null and v.key is null then 'foreign'
            when c.key is null then 'stale'
            when b.times > 1 then 'doubled'
            else 'missing' end as fault
  from expected_keys c
  full join (select key, list, month, written from intended_keys
              where index_name = %(index_name)s) v on v.key = c.key
  full join (select key, count(*) as times from bucket_keys group by key) b
         on b.key = coalesce(c.key, v.key)
 where c.key is null or v.key is null or not v.written or b.key is null or b.times > 1

-- name: outdated
insert into differences (key, list, month, fault)
select intended.key, %(list)s, %(month)s, 'outdated'
  from unnest(%(keys)s::text[]) as intended (key)
 where not exists (select from differences d where d.key = intended.key)

-- name: figures
select (select count(*) from bucket_keys), (select count(*) from expected_keys),
       (select count(*) from intended_keys where index_name = %(index_name)s and written)

-- name: months
select distinct list, month
  from intended_keys
 where index_name = %(index_name)s
 order by list, month

-- name: faults
select fault, list, month, count(*), (array_agg(key order by key))[:3]
  from differences
 group by fault, list, month
 order by fault, list nulls first, month

-- name: mark
-- The next run of these months writes them again.
update intended_keys set written = false
 where index_name = %(index_name)s and written
   and key in (select key from differences where fault in ('missing', 'doubled', 'outdated'))

-- name: page
-- Keys of one fault in one month, in order. A stale key that is expected by now is left out.
select d.key
  from differences d
 where d.fault = %(fault)s
   and d.list is not distinct from %(list)s and d.month is not distinct from %(month)s
   and d.key > %(after)s
   and (d.fault <> 'stale' or not exists (
       select from expected_keys c
        where c.key = d.key and c.list = d.list and c.month = d.month))
 order by d.key
 limit %(most)s
