-- The messages found in an archive: where they are, and what became of them. Used by
-- tables/archive_entries.py.

-- name: read
select ordinal, archive_offset, archive_length, digest, outcome, message_id, variant,
       content_hash, outline, ending
  from archive_entries
 where list = %(list)s and month = %(month)s
 order by ordinal

-- name: delete
delete from archive_entries
 where list = %(list)s and month = %(month)s and ordinal = any(%(ordinals)s)

-- name: copy
copy archive_entries (
       list, month, ordinal, archive_offset, archive_length, digest, outcome, message_id, variant,
       content_hash, outline, ending)
from stdin
