-- Messages and chunks as records for people. Used by reading/records.py.

-- name: list
-- A row for each message, looked up one by one: see known in messages.sql.
select e.message_id, e.month, m.subject, m.from_email, m.sent_at,
       shown_ids(m.in_reply_to) as in_reply_to, shown_thread_id(t.thread_id) as thread_id,
       e.archive_offset, e.archive_length, e.content_hash, m.flags, c.place is not null as contested
  from archive_entries e
 cross join lateral (
       select subject, from_email, sent_at, in_reply_to, flags
         from shown_messages
        where (list, month, message_id, variant) = (e.list, e.month, e.message_id, e.variant)
        limit 1) m
  left join shown_texts c using (message_id, list, month, variant)
  left join threads t on t.message_id = e.message_id and coalesce(c.place, 1) = 1
 where e.list = %(list)s and (%(month)s::text is null or e.month = %(month)s)
   and e.outcome = 'stored'
 order by case %(sort)s::text when 'oldest' then m.sent_at end,
          case %(sort)s::text when 'newest' then m.sent_at end desc,
          e.month, e.ordinal

-- name: show
-- Text by text, the one that arrived first before the others; only that one is in the thread. `text`
-- is its number, and null where the id is not contested.
select m.*, e.archive_offset, e.archive_length, t.thread_id, t.parent_id, t.depth, t.position,
       t.by_subject, c.place as text, shown_ids(m.in_reply_to) as in_reply_to,
       shown_ids(m.refs) as refs,
       array(select unnest(m.refs || m.in_reply_to)
             except select unnest(shown_ids(m.refs || m.in_reply_to))) as closed_ids
  from shown_messages m
  join archive_entries e using (list, month, message_id, variant)
  left join shown_texts c using (message_id, list, month, variant)
  left join lateral shown_node(m.message_id) t on coalesce(c.place, 1) = 1
 where m.message_id = %(message_id)s and e.outcome = 'stored'
 order by coalesce(c.place, 1), m.arrived_at, break_tie(m.list, m.month, m.variant) collate "C"

-- name: chunks
select key, list, month, variant, index, text, spans, tokens
  from chunks
 where message_id = %(message_id)s and list = any((select shown_lists())::text[])
 order by list, month, variant, index

-- name: around
-- The spans of some chunks in their messages, each with some characters before and after it. A
-- compressed body is read once for each chunk, and not for each span.
select c.key,
       array(
           select substr(b.body, greatest(c.spans[i] - %(context)s, 0) + 1,
                         c.spans[i + 1] - greatest(c.spans[i] - %(context)s, 0) + %(context)s)
             from generate_series(1, cardinality(c.spans), 2) as i
            order by i)
  from chunks c
  join shown_messages m using (list, month, message_id, variant)
 cross join lateral (select m.body_text || '' as body offset 0) b
 where c.key = any(%(keys)s)
