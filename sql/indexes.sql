-- The indexes of a bucket, and the live one. Used by tables/indexes.py.

-- name: record
insert into indexes (bucket, name, encoder, precision, fingerprint)
values (%(bucket)s, %(name)s, %(encoder)s, %(precision)s, %(fingerprint)s)
on conflict do nothing

-- name: first_live
-- The first index of a bucket to be filled is live until another is promoted.
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
-- The word indexes of all places.
select i.bucket, i.name
  from indexes i
 where i.encoder = 'bm25'
 order by i.bucket, i.name

-- name: promotion
-- The last promotion of the live index; the first of a bucket became live without one.
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
-- One switch at a time: what is retired must not become live meanwhile.
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
