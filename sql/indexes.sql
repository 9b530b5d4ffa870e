-- Records of indexes, live indexes, and manifests. {manifest} is vectors or words, {asset} its name as
-- a literal. Used by tables/indexes.py.

-- name: record
insert into indexes (bucket, name, encoder, precision, fingerprint)
values (%(bucket)s, %(name)s, %(encoder)s, %(precision)s, %(fingerprint)s)
on conflict do nothing

-- name: first_live
-- The first index of a bucket that is filled is live until another is promoted.
insert into live_indexes (bucket, name)
values (%(bucket)s, %(name)s)
on conflict do nothing

-- name: live
select i.name, i.encoder, i.precision, i.fingerprint, i.made_at::text, true
  from live_indexes l
  join indexes i using (bucket, name)
 where l.bucket = %(bucket)s

-- name: all
select i.name, i.encoder, i.precision, i.fingerprint, i.made_at::text, l.name is not null
  from indexes i
  left join live_indexes l using (bucket, name)
 where i.bucket = %(bucket)s
 order by i.made_at, i.name

-- name: of_words
-- Word indexes of all buckets.
select i.bucket, i.name
  from indexes i
 where i.encoder = 'bm25'
 order by i.bucket, i.name

-- name: promotion
-- Last promotion of the live index. The first index of a bucket became live without one.
select l.name, l.since, coalesce(p.report, '{}')
  from live_indexes l
  left join lateral (
       select report
         from promotions
        where bucket = l.bucket and name = l.name
        order by at desc
        limit 1) p on true
 where l.bucket = %(bucket)s

-- name: lock
-- Serializes promotion and retirement: an index must not become live while it is retired.
select pg_advisory_xact_lock(hashtextextended('index ' || %(bucket)s, 0))

-- name: switch
insert into live_indexes (bucket, name)
values (%(bucket)s, %(name)s)
on conflict (bucket) do update set name = excluded.name, since = now()

-- name: promoted
insert into promotions (bucket, name, replaced, forced, report)
values (%(bucket)s, %(name)s, %(replaced)s, %(forced)s, %(report)s)

-- name: remove
delete from indexes where bucket = %(bucket)s and name = %(name)s

-- name: read_keys
select key, digest, written
  from {manifest}
 where index_name = %(index_name)s and list = %(list)s and month = %(month)s

-- name: mark_intended
insert into {manifest} (index_name, list, month, key, digest, written)
select %(index_name)s, %(list)s, %(month)s, key, digest, false
  from unnest(%(keys)s::text[], %(digests)s::bytea[]) as intended (key, digest)
on conflict (index_name, key) do update
   set digest = excluded.digest, written = false

-- name: mark_written
update {manifest} set written = true
 where index_name = %(index_name)s and list = %(list)s and month = %(month)s and not written

-- name: mark_lost
-- Whole corpus: an index is created, and an earlier one of its name is lost. Months with keys there
-- get empty inputs.
with lost as (
    update {manifest} set written = false
     where index_name = %(index_name)s and written
    returning list, month)
update partitions p
   set inputs = ''
  from (select distinct list, month from lost) l
 where (p.asset, p.list, p.month) = ({asset}, l.list, l.month)
   and right(p.inputs, length(%(index_name)s) + 1) = ' ' || %(index_name)s

-- name: drop_keys
delete from {manifest} where index_name = %(index_name)s and key = any(%(keys)s)

-- name: remove_keys
-- Whole corpus: an index is retired.
delete from {manifest} where index_name = %(index_name)s

-- name: count_keys
-- Whole corpus: a person lists the indexes or promotes one.
select count(*) from {manifest} where index_name = %(index_name)s and written

-- name: count_by_month
-- Numbers of keys and of written keys per month of some lists.
-- Whole corpus: a backfill asks once for all of its months.
select list, month, count(*), count(*) filter (where written)
  from {manifest}
 where index_name = %(index_name)s and list = any(%(lists)s)
 group by list, month

-- name: complete_vectors
-- True if an index has a vector for every chunk.
-- Whole corpus: indexes are compared.
select exists (select from vectors where index_name = %(index_name)s and written)
   and not exists (
       select from chunks c
        where not exists (
              select from vectors v
               where v.index_name = %(index_name)s and v.key = c.key and v.written))

-- name: complete_words
-- True if the words of every month were written from its present messages.
select exists (select from words where index_name = %(index_name)s and written)
   and not exists (
       select from partitions m
        where m.asset = 'messages'
          and not exists (
              select from partitions w
               where w.asset = 'words' and w.list = m.list and w.month = m.month
                 and w.inputs = m.digest || ' ' || %(index_name)s))
