-- The mail that decided a commit, for people. Used by reading/decisions.py.

-- name: mails
-- Some messages, each as the copy that arrived first, with the lists that have it.
select w.id, shown_thread_id(n.thread_id), m.subject, m.from_name, m.from_email, m.sent_at,
       array(select distinct o.list from shown_messages o where o.message_id = w.id order by 1)
  from unnest(%(ids)s::text[]) as w (id)
 cross join lateral first_shown(w.id) m
  left join lateral shown_node(w.id) n on true

-- name: naming
-- Messages of some lists whose new text has the commit's id, whole or shortened, oldest first.
select m.message_id
  from shown_messages m
 where m.search @@ %(query)s::tsquery and m.list = any(%(lists)s)
   and m.sent_at > %(since)s::timestamptz - interval '1 day'
   and not exists (select from shown_texts c where c.message_id = m.message_id)
 group by m.message_id
 order by min(m.sent_at), m.message_id
 limit 20

-- name: oldest
-- The first month of some lists that has mail.
select min(month)
  from partitions
 where asset = 'messages' and list = any(%(lists)s) and list = any((select shown_lists())::text[])
   and (counts ->> 'stored')::integer > 0
