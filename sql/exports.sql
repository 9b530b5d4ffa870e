-- Messages for mailboxes and feeds. Used by reading/exports.py.

-- name: thread
-- The archived messages of a thread, the oldest first.
select t.message_id
  from shown_thread(%(thread_id)s) t
 cross join lateral first_shown(t.message_id) m
 where not t.is_ghost
 order by m.sent_at, t.message_id
 limit %(most)s

-- name: newest
-- The newest messages of a thread.
select t.message_id
  from shown_thread(%(thread_id)s) t
 cross join lateral first_shown(t.message_id) m
 where not t.is_ghost
 order by m.sent_at desc, t.message_id
 limit %(most)s

-- name: messages
-- The copy of each message that arrived first, in the order of the ids, with all lists of its text.
-- `text` is the number of a text where an id is contested.
select m.message_id, places.lists, m.sent_at, m.subject, m.from_name, m.from_email, m.recipients,
       m.cc, shown_ids(m.in_reply_to) as in_reply_to,
       shown_ids(m.refs) as "references", m.body_text, m.attachments, m.place as text,
       coalesce(t.by_subject, false) as by_subject
  from unnest(%(ids)s::text[], %(texts)s::integer[])
       with ordinality as wanted (message_id, text, number)
 cross join lateral (
       select c.*, o.place
         from shown_messages c
         left join shown_texts o using (message_id, list, month, variant)
        where c.message_id = wanted.message_id and coalesce(o.place, wanted.text) = wanted.text
        order by c.arrived_at, break_tie(c.list, c.month, c.variant) collate "C"
        limit 1) m
 cross join lateral (
       select array_agg(distinct c.list) as lists
         from shown_messages c
         left join shown_texts o using (message_id, list, month, variant)
        where c.message_id = wanted.message_id
          and coalesce(o.place, wanted.text) = wanted.text) places
  left join threads t on t.message_id = m.message_id and coalesce(m.place, 1) = 1
 order by wanted.number
