-- The manifest of the vector index.

-- name: sample
-- Of the chunks of the first messages of a month those that are indexed.
with firsts as materialized (
    select list, month, message_id, variant, ordinal
      from archive_entries
     where list = %(list)s and month = %(month)s and outcome = 'stored'
     order by ordinal
     limit 5)
select c.key, c.index, m.subject, m.from_name as sender
  from firsts f
 cross join lateral (
       select subject, from_name from messages
        where (list, month, message_id, variant) = (f.list, f.month, f.message_id, f.variant)
        limit 1) m
  join chunks c using (list, month, message_id, variant)
 where c.key = any(array(
       select key from vectors
        where list = %(list)s and month = %(month)s and written))
 order by f.ordinal, c.index
 limit 5
