-- The messages found in an archive: where they are, and what became of them. Used by
-- tables/archive_entries.py.

-- name: read
-- Each with its row in messages, where it has one or duplicates one. One lookup an entry: of a
-- month that was not there at the last analyze, any other join expects a single row.
select e.ordinal, e.archive_offset, e.archive_length, e.digest, e.outcome, e.message_id,
       e.variant, e.content_hash, e.outline, e.ending, m.row_hash, m.from_name,
       m.from_email, m.subject_base
  from archive_entries e
  left join messages m
    on (m.list, m.month, m.message_id, m.variant) = (e.list, e.month, e.message_id, e.variant)
   and e.outcome = 'stored'
 where e.list = %(list)s and e.month = %(month)s
 order by e.ordinal

-- name: delete
delete from archive_entries
 where list = %(list)s and month = %(month)s and ordinal = any(%(ordinals)s)

-- name: copy
copy archive_entries (
       list, month, ordinal, archive_offset, archive_length, digest, outcome, message_id, variant,
       content_hash, outline, ending)
from stdin

-- name: place
-- Where the bytes of a message are.
select archive_offset, archive_length
  from archive_entries
 where list = %(list)s and month = %(month)s and message_id = %(message_id)s
   and variant = %(variant)s and outcome = 'stored'
