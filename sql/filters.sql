-- One condition for each field of a query, on messages m. search/sql_conditions.py puts those that a
-- request has, or their opposites, in place of {passes} in search.sql, and no others: a condition
-- that is always true would keep the planner from its indexes. None is ever null.

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
-- One text of all receivers, a line for each, is indexed (messages_receivers); a value has no lines.
join_receivers(m.recipients, m.cc) like like_pattern(%(receiver)s)

-- name: receiver_name
-- As receiver, but for the addresses, which the index has.
join_receivers(m.recipients, m.cc) like like_pattern(%(receiver_name)s)
and regexp_replace(join_receivers(m.recipients, m.cc), '\S*@\S*', '', 'g')
    like like_pattern(%(receiver_name)s)

-- name: subject
lower(m.subject) like like_pattern(%(subject)s)

-- name: threads
-- An array, which an index is asked for in an alternative too.
m.message_id = any(array(select t.message_id from threads t where t.thread_id = any(%(threads)s)))

-- name: ids
m.message_id = any(%(ids)s)

-- name: patch
(m.segments @> '[["patch"]]' or m.attachments @> '[{"is_patch": true}]')

-- name: reply
(m.in_reply_to <> '{}' or m.refs <> '{}')

-- name: first
(m.in_reply_to = '{}' and m.refs = '{}')

-- name: attachment
m.attachments <> '[]'

-- name: file
-- One text of all names, a line for each, is indexed (messages_file_names); a value has no lines.
m.attachments <> '[]' and join_file_names(m.attachments) like like_pattern(%(file)s)

-- name: words
m.search @@ %(words)s::tsquery

-- name: phrase
-- A phrase with words that have no lexeme (stop words). They are in no index: its places in the
-- subject and the new text are found by a pattern, and each is a match where its other words are.
-- The whole text is looked through first: to cut the new text out of it takes five times as long.
m.search @@ %(words)s::tsquery
and (m.body_text ~* %(pattern)s or m.subject ~* %(pattern)s)
and exists (
    select
      from (select m.subject || E'\n' || coalesce(string_agg(
                       substr(m.body_text, (s.part ->> 0)::int + 1,
                              (s.part ->> 1)::int - (s.part ->> 0)::int), '' order by s.number), '')
              from jsonb_array_elements(m.segments) with ordinality as s (part, number)
             where s.part ->> 2 = 'text') as own (text)
     cross join lateral regexp_matches(own.text, %(pattern)s, 'gi') as f (place)
     where to_tsvector(%(language)s::regconfig, f.place[1]) @@ %(words)s::tsquery)
