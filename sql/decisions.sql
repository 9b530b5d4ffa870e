-- The mail that decided a commit, for people. Used by reading/decisions.py.

-- name: mails
-- Some messages, each as the copy that arrived first, with the lists that have it.
select w.id, t.thread_id, m.subject, m.from_name, m.from_email, m.sent_at,
       array(select distinct o.list from messages o where o.message_id = w.id order by 1)
  from unnest(%(ids)s::text[]) as w (id)
 cross join lateral first_copy(w.id) m
  left join threads t on t.message_id = w.id

-- name: naming
-- Messages of some lists whose new text has the commit's id, whole or shortened, oldest first.
select m.message_id
  from messages m
 where m.search @@ %(query)s::tsquery and m.list = any(%(lists)s)
   and m.sent_at > %(after)s::timestamptz - interval '1 day'
   and not exists (select from contested_texts c where c.message_id = m.message_id)
 group by m.message_id
 order by min(m.sent_at), m.message_id
 limit 20

-- name: oldest
-- The first month of some lists that has mail.
select min(month) from partitions
 where asset = 'messages' and list = any(%(lists)s) and (counts ->> 'stored')::integer > 0
