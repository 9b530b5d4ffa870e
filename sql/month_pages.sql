-- What a page of a month, or the titles on a page, show of messages; no text is read. Used by
-- tables/month_pages.py.

-- name: titles
-- Subject, sender and date of some messages, each of its earliest copy.
select distinct on (message_id) message_id, subject, from_name, from_email, sent_at
  from messages
 where message_id = any(%(ids)s)
 order by message_id, variant, sent_at

-- name: month
-- Some of the messages of a month, thread by thread: the threads in the order of their first
-- message in it. The list is named as messages.sql says.
with of_month as materialized (
    select distinct on (message_id) message_id, subject, from_name, from_email, sent_at
      from messages
     where list = (select %(list)s) and month = %(month)s
     order by message_id, variant)
select m.message_id, m.subject, m.from_name, m.from_email, m.sent_at,
       coalesce(t.thread_id, m.message_id) as thread_id, coalesce(t.depth, 0) as depth
  from of_month m
  left join threads t on t.message_id = m.message_id
 order by min(m.sent_at) over (partition by coalesce(t.thread_id, m.message_id)),
          coalesce(t.thread_id, m.message_id), t.position, m.message_id
offset %(first)s
 limit %(most)s
