-- What is still held of what must stay out: by a month, found by the indexes on (list, month), or
-- anywhere. Used by tables/forgotten_left.py. Messages are found by their list as messages.sql says.

-- name: messages
select message_id, from_name, from_email, refs || in_reply_to, reply_to || recipients || cc
  from messages
 where list = (select %(list)s) and month = %(month)s

-- name: chunks
-- A row for each message that has chunks, and whether it was removed.
select c.message_id,
       bool_or(split_part(c.key, '#', 1) in (
           select key_prefix from left_out where list = %(list)s and month = %(month)s))
  from chunks c
 where c.list = %(list)s and c.month = %(month)s
 group by c.message_id

-- name: threads
-- All of the threads that messages of the month are in.
select t.message_id, t.thread_id, t.parent_id, t.parent_message_id, t.root_id
  from threads t
 where t.thread_id in (
       select o.thread_id
         from messages m
         join threads o using (message_id)
        where m.list = (select %(list)s) and m.month = %(month)s)

-- name: aliases
select a.id
  from thread_aliases a
 where a.message_id in (
       select message_id from messages where list = (select %(list)s) and month = %(month)s)

-- name: key_prefixes
select key_prefix from left_out where list = %(list)s and month = %(month)s

-- name: all_ids
-- Every id that a row names, but for those of the entries of an archive, which are in messages.
-- Whole corpus: removals of a backup are digests, which are compared with those of every id here.
select message_id from messages
union
select unnest(refs || in_reply_to) from messages
union
select message_id from threads
union
select message_id from thread_changes
union
select id from thread_aliases
union
select message_id from thread_aliases
union
select message_id from removed_upstream

-- name: all_authors
-- Whole corpus: as all_ids.
select distinct from_name, from_email from messages

-- name: all_entries
-- Whole corpus: as all_ids.
select distinct e.entry
  from messages m
 cross join unnest(m.reply_to || m.recipients || m.cc) as e (entry)
