-- What a reader who goes from message to message needs. Used by tables/browsing.py.

-- name: months
-- From what each load has counted: no message is read.
select list, month, (counts->>'stored')::int as messages
  from partitions
 where asset = 'messages' and (counts->>'stored')::int > 0
 order by list, month

-- name: newest_month
-- From what each load has counted: no message is read.
select max(month)
  from partitions
 where asset = 'messages' and (counts->>'stored')::int > 0

-- name: near_ids
-- The ids before and after one that is in no archive, in the order of the index.
(select distinct message_id from messages
  where message_id < %(id)s order by message_id desc limit %(most)s)
union
(select distinct message_id from messages
  where message_id >= %(id)s order by message_id limit %(most)s)

-- name: known_ids
select message_id from threads where message_id = any(%(ids)s)

-- name: neighbours
-- The archived messages before and after one, in the order of its thread.
select (select n.message_id
          from threads n
         where n.thread_id = t.thread_id and n.position < t.position and not n.is_ghost
         order by n.position desc
         limit 1),
       (select n.message_id
          from threads n
         where n.thread_id = t.thread_id and n.position > t.position and not n.is_ghost
         order by n.position
         limit 1)
  from threads t
 where t.message_id = %(message_id)s

-- name: only_read
-- For the session: no writes, and no statement beyond a time.
select set_config('default_transaction_read_only', 'on', false),
       set_config('statement_timeout', %(timeout)s, false)
