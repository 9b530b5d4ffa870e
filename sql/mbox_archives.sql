-- Fetched archives, the messages found in them, messages that they lost, and former archives. Used by
-- tables/mbox_archives.py.

-- name: read
select source, object_key, sha256, bytes, version, found, content_sha256, dialect, found_dialect,
       list_id
  from mbox_archives
 where list = %(list)s and month = %(month)s

-- name: of_lists
-- Like `read`, for all months of some lists.
select list, month, source, object_key, sha256, bytes, version, found, content_sha256, dialect,
       found_dialect, list_id
  from mbox_archives
 where list = any(%(lists)s)

-- name: write
-- Leaves a row unchanged if its columns are equal and its checksum is right.
insert into mbox_archives as a
       (list, month, source, object_key, sha256, bytes, version, found, content_sha256, dialect,
        found_dialect, list_id)
values (%(list)s, %(month)s, %(source)s, %(object_key)s, %(sha256)s, %(bytes)s, %(version)s,
        %(found)s, %(content_sha256)s, %(dialect)s, %(found_dialect)s,
        %(list_id)s)
on conflict (list, month) do update
   set source = excluded.source, object_key = excluded.object_key, sha256 = excluded.sha256,
       bytes = excluded.bytes, version = excluded.version, found = excluded.found,
       content_sha256 = excluded.content_sha256, dialect = excluded.dialect,
       found_dialect = excluded.found_dialect, list_id = excluded.list_id, fetched_at = now(),
       checksum = excluded.checksum
 where a.checksum <> archive_checksum(a)
    or (a.source, a.object_key, a.sha256, a.bytes, a.version, a.found, a.content_sha256, a.dialect,
        a.found_dialect, a.list_id)
       is distinct from
       (excluded.source, excluded.object_key, excluded.sha256, excluded.bytes, excluded.version,
        excluded.found, excluded.content_sha256, excluded.dialect, excluded.found_dialect,
        excluded.list_id)

-- name: known
-- Versions of all months of some lists, including months without an archive.
select list, month, version, fetched_at from mbox_archives where list = any(%(lists)s)

-- name: months
-- Months with an archive, or with mail of an archive that has vanished.
select month from mbox_archives where list = %(list)s and object_key is not null
union
select month
  from partitions
 where list = %(list)s
   and greatest((counts->>'stored')::float8, (counts->>'documents')::float8,
                (counts->>'chunks')::float8, (counts->>'texts')::float8) > 0
 order by month

-- name: usual_list_ids
-- List-Ids of several other months, most frequent first.
select list_id
  from mbox_archives
 where list = %(list)s and month <> %(month)s and list_id <> ''
 group by list_id
having count(*) >= %(least)s
 order by count(*) desc, list_id

-- name: read_entries
select ordinal, archive_offset, archive_length, digest, outcome, message_id, variant,
       content_hash, outline, ending
  from archive_entries
 where list = %(list)s and month = %(month)s
 order by ordinal

-- name: delete_entries
delete from archive_entries
 where list = %(list)s and month = %(month)s and ordinal = any(%(ordinals)s)

-- name: drop_altered_entries
delete from archive_entries e
 where list = %(list)s and month = %(month)s and checksum <> entry_checksum(e)

-- name: copy_entries
copy archive_entries (
       list, month, ordinal, archive_offset, archive_length, digest, outcome, message_id, variant,
       content_hash, outline, ending)
from stdin

-- name: record_lost
insert into removed_upstream (list, month, digest, message_id, former_key)
values (%(list)s, %(month)s, %(digest)s, %(message_id)s, %(former_key)s)
on conflict do nothing

-- name: drop_returned
delete from removed_upstream
 where list = %(list)s and month = %(month)s and digest = any(%(digests)s)

-- name: lost_digests
select digest from removed_upstream where list = %(list)s and month = %(month)s

-- name: losses_of_message
-- Losses in the lists that this session may show.
select r.list, r.month, r.noticed_at, f.kept_until
  from removed_upstream r
  left join former_archives f on f.object_key = r.former_key
 where r.message_id = %(message_id)s and r.list = any((select shown_lists())::text[])
 order by r.list, r.month

-- name: delete_lost
delete from removed_upstream where message_id = any(%(message_ids)s)
returning list, month, message_id

-- name: former_of_lost
select f.object_key, f.list, f.month
  from former_archives f
 where exists (
       select from cut_messages c
        where c.list = f.list and c.month = f.month and c.removal = any(%(removals)s))
    or %(of_senders)s and exists (
       select from removed_upstream r where r.list = f.list and r.month = f.month)
 order by f.list, f.month, f.object_key

-- name: keep_former
insert into former_archives (object_key, list, month, kept_until)
values (%(object_key)s, %(list)s, %(month)s, now() + make_interval(days => %(days)s))
on conflict (object_key) do update set kept_until = excluded.kept_until

-- name: kept_former
-- Former archives of a month that are still kept.
select object_key from former_archives
 where list = %(list)s and month = %(month)s
   and kept_until > clock_timestamp()

-- name: former_among
select object_key
  from former_archives
 where object_key = any(%(keys)s)
   and object_key not in (select object_key from mbox_archives where object_key is not null)
 order by object_key

-- name: expired_former
select object_key, list, month from former_archives
 where kept_until <= clock_timestamp()

-- name: drop_former
delete from former_archives where object_key = %(object_key)s

-- name: replace_former
-- Two files may become equal when mail is cut out of them.
insert into former_archives as f (object_key, list, month, kept_until)
select %(new_key)s, list, month, kept_until from former_archives where object_key = %(object_key)s
on conflict (object_key) do update
   set kept_until = greatest(f.kept_until, excluded.kept_until)

-- name: replace_former_key
update removed_upstream set former_key = %(new_key)s where former_key = %(object_key)s
