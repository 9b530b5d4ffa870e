-- Messages for mailboxes and feeds. Used by reading/exports.py.

-- name: thread
-- Archived messages of a thread, oldest first.
select t.message_id
  from shown_thread(%(thread_id)s) t
 cross join lateral first_shown(t.message_id) m
 where not t.is_ghost
 order by m.sent_at, t.message_id

-- name: newest
-- Newest messages of a thread before a given one.
select t.message_id, 1, m.sent_at
  from shown_thread(%(thread_id)s) t
 cross join lateral first_shown(t.message_id) m
 where not t.is_ghost and (m.sent_at, t.message_id) < (%(sent_at)s, %(message_id)s)
 order by m.sent_at desc, t.message_id desc
 limit %(most)s

-- name: messages
-- The first copy of each message, in the order of the ids, with all lists of that text. `text`: number
-- of the text, where the id is contested.
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

-- name: month
-- Keys of the rows of a month, by date. materialized: the rows are found by month and then sorted; the
-- planner would read the whole list in the order of its dates. For `(select ...)` around the list see
-- messages.sql. It is null if the list may not be shown: for the view shown_messages the planner would
-- expect a few rows of any month.
with of_month as materialized (
    select message_id, variant, sent_at
      from messages
     where list = (select %(list)s::text where %(list)s = any(shown_lists()))
       and month = %(month)s)
select message_id, variant from of_month order by sent_at, message_id, variant

-- name: rows
-- Rows of a month by key, in the order of the keys. `text`: number of the text, where the id is
-- contested.
select m.message_id, array[m.list] as lists, m.sent_at, m.subject, m.from_name, m.from_email,
       m.recipients, m.cc, shown_ids(m.in_reply_to) as in_reply_to, shown_ids(m.refs) as "references",
       m.body_text, m.attachments,
       o.place as text, coalesce(t.by_subject, false) as by_subject
  from unnest(%(ids)s::text[], %(variants)s::smallint[])
       with ordinality as wanted (message_id, variant, number)
  join shown_messages m
    on (m.list, m.month, m.message_id, m.variant)
       = (%(list)s, %(month)s, wanted.message_id, wanted.variant)
  left join shown_texts o
    on (o.message_id, o.list, o.month, o.variant) = (m.message_id, m.list, m.month, m.variant)
  left join threads t on t.message_id = m.message_id and coalesce(o.place, 1) = 1
 order by wanted.number

-- name: newest_of_list
-- Newest messages of a list before a given one, including ties of time and id. Uses
-- messages_list_date.
select m.message_id, coalesce(o.place, 1), m.sent_at
  from (select message_id, list, month, variant, sent_at
          from shown_messages
         where list = %(list)s and (sent_at, message_id) < (%(sent_at)s, %(message_id)s)
         order by sent_at desc, message_id desc
         fetch first %(most)s rows with ties) m
  left join shown_texts o using (message_id, list, month, variant)
 order by m.sent_at desc, m.message_id desc, o.place

-- name: newest_of_month
-- Like newest_of_list for one month, which is read as in `month`.
with of_month as materialized (
    select message_id, list, month, variant, sent_at
      from messages
     where list = (select %(list)s::text where %(list)s = any(shown_lists()))
       and month = %(month)s)
select m.message_id, coalesce(o.place, 1), m.sent_at
  from (select *
          from of_month
         where (sent_at, message_id) < (%(sent_at)s, %(message_id)s)
         order by sent_at desc, message_id desc
         fetch first %(most)s rows with ties) m
  left join shown_texts o using (message_id, list, month, variant)
 order by m.sent_at desc, m.message_id desc, o.place

-- name: versions
-- Versions of the inputs of an export: the rows of a list or of one month, the threads, and the shown
-- lists.
select month, digest, updated_at::text
  from partitions
 where asset = 'messages' and list = %(list)s and month = coalesce(%(month)s, month)
 union all
select '', digest, updated_at::text from partitions where asset = 'threads' and list is null
 union all
select '', shown_lists()::text, ''
 order by 1, 2
