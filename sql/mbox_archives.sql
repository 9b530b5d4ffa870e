-- The archives as fetched. Used by tables/mbox_archives.py.

-- name: read
select source, object_key, sha256, bytes, version, found, content_sha256, dialect, found_dialect,
       list_id
  from mbox_archives
 where list = %(list)s and month = %(month)s

-- name: of_lists
-- As read, of all months of some lists.
select list, month, source, object_key, sha256, bytes, version, found, content_sha256, dialect,
       found_dialect, list_id
  from mbox_archives
 where list = any(%(lists)s)

-- name: write
insert into mbox_archives
       (list, month, source, object_key, sha256, bytes, version, found, content_sha256, dialect,
        found_dialect, list_id)
values (%(list)s, %(month)s, %(source)s, %(object_key)s, %(sha256)s, %(bytes)s, %(version)s,
        %(found)s, %(content_sha256)s, %(dialect)s, %(found_dialect)s,
        %(list_id)s)
on conflict (list, month) do update
   set source = excluded.source, object_key = excluded.object_key, sha256 = excluded.sha256,
       bytes = excluded.bytes, version = excluded.version, found = excluded.found,
       content_sha256 = excluded.content_sha256, dialect = excluded.dialect,
       found_dialect = excluded.found_dialect, list_id = excluded.list_id, fetched_at = now()

-- name: known
-- What is known of the months of some lists, those without an archive included.
select list, month, version, fetched_at from mbox_archives where list = any(%(lists)s)

-- name: months
-- The months that have an archive, or something that was made of one which has vanished.
select month from mbox_archives where list = %(list)s and object_key is not null
union
select month
  from partitions
 where list = %(list)s
   and greatest((counts->>'stored')::float8, (counts->>'documents')::float8,
                (counts->>'chunks')::float8, (counts->>'texts')::float8) > 0
 order by month

-- name: usual_list_ids
-- Those of several other months, the most frequent first.
select list_id
  from mbox_archives
 where list = %(list)s and month <> %(month)s and list_id <> ''
 group by list_id
having count(*) >= %(least)s
 order by count(*) desc, list_id
