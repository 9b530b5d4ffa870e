-- One condition for each filter of a request, on messages m. search/filters.py puts those that a
-- request has in place of {passes} in search.sql, and no others: a condition that is always true
-- would keep the planner from its indexes.

-- name: lists
m.list = any(%(lists)s)

-- name: months
m.month = any(%(months)s)

-- name: after
m.sent_at >= %(after)s::timestamptz

-- name: before
m.sent_at < %(before)s::timestamptz

-- name: senders
lower(m.from_email) = any(%(senders)s)

-- name: receiver
exists (select from unnest(m.recipients || m.cc) as r (who)
         where strpos(lower(r.who), lower(%(receiver)s)) > 0)

-- name: subject
strpos(lower(m.subject), lower(%(subject)s)) > 0

-- name: thread
m.message_id in (select t.message_id from threads t where t.thread_id = %(thread)s)

-- name: without
m.message_id <> all(%(without)s)

-- name: patch
(m.segments @> '[["patch"]]' or m.attachments @> '[{"is_patch": true}]')

-- name: reply
(m.in_reply_to <> '{}' or m.refs <> '{}')

-- name: first
(m.in_reply_to = '{}' and m.refs = '{}')

-- name: has_attachment
m.attachments <> '[]'

-- name: attachment
exists (select from jsonb_array_elements(m.attachments) as a (one)
         where strpos(lower(a.one ->> 'name'), lower(%(attachment)s)) > 0)

-- name: required
-- The phrases and exclusions of the query, in the language of each list.
exists (select from unnest(%(required_lists)s::text[], %(required)s::text[]) as q (list, question)
         where q.list = m.list and m.search @@ q.question::tsquery)
