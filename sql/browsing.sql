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

-- name: newest_id
select message_id from messages order by sent_at desc limit 1

-- name: near_ids
-- The ids before and after one that is in no archive, in the order of the index.
(select distinct message_id from messages
  where message_id < %(id)s order by message_id desc limit %(near)s)
union
(select distinct message_id from messages
  where message_id >= %(id)s order by message_id limit %(near)s)

-- name: unknown_words
-- The words that no message has, in any of the languages; a word that none of them searches for is
-- not judged.
select w.word
  from unnest(%(words)s::text[]) with ordinality as w (word, place)
 where exists (
       select from unnest(%(languages)s::text[]) as l (name)
        where numnode(plainto_tsquery(l.name::regconfig, w.word)) > 0)
   and not exists (
       select from unnest(%(languages)s::text[]) as l (name)
         join messages m on m.search @@ plainto_tsquery(l.name::regconfig, w.word))
 order by w.place

-- name: known_ids
-- Ids of archived messages alone: anybody can name an address as what he answers, and give his message
-- the address of somebody who writes for an id.
select m.message_id
  from messages m
 where m.message_id = any(%(ids)s)
   and not exists (select from senders s where s.address = lower(m.message_id))

-- name: archived_ids
select message_id from messages where message_id = any(%(ids)s)

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

-- name: list_neighbours
-- The messages before and after one by date, in each list that carries it (index messages_list_date).
with own as materialized (
    select distinct on (list) list, sent_at
      from messages
     where message_id = %(message_id)s
     order by list, variant)
select o.list,
       (select n.message_id
          from messages n
         where n.list = o.list and (n.sent_at, n.message_id) < (o.sent_at, %(message_id)s)
         order by n.sent_at desc, n.message_id desc
         limit 1),
       (select n.message_id
          from messages n
         where n.list = o.list and (n.sent_at, n.message_id) > (o.sent_at, %(message_id)s)
         order by n.sent_at, n.message_id
         limit 1)
  from own o
 order by o.list

-- name: only_read
-- For the session: no writes, and no statement beyond a time.
select set_config('default_transaction_read_only', 'on', false),
       set_config('statement_timeout', %(timeout)s, false)
