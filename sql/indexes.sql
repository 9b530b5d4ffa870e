-- The indexes of a bucket and which of them is live. Used by store/indexes.py.

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

-- name: count
select count(*) from vectors where index_name = %(index_name)s and written

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

-- name: remove_manifest
delete from vectors where index_name = %(index_name)s
