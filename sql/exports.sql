-- Messages for mailboxes and feeds. Used by reading/exports.py.

-- name: thread
-- The archived messages of a thread, the oldest first.
select t.message_id
  from threads t
 cross join lateral first_copy(t.message_id) m
 where t.thread_id = %(thread_id)s and not t.is_ghost
 order by m.sent_at, t.message_id
 limit %(most)s

-- name: newest
-- The newest messages of a thread.
select t.message_id
  from threads t
 cross join lateral first_copy(t.message_id) m
 where t.thread_id = %(thread_id)s and not t.is_ghost
 order by m.sent_at desc, t.message_id
 limit %(most)s

-- name: messages
-- The copy of each message that arrived first, in the order of the ids, with all its lists.
select m.message_id, places.lists, m.sent_at, m.subject, m.from_name, m.from_email, m.recipients,
       m.cc, m.in_reply_to, m.refs as "references", m.body_text, m.attachments
  from unnest(%(ids)s::text[]) with ordinality as wanted (message_id, place)
 cross join lateral (
       select array_agg(distinct c.list) as lists
         from messages c
        where c.message_id = wanted.message_id) places
 cross join lateral first_copy(wanted.message_id) m
 order by wanted.place
