-- Threads: building those that have changed. Used by tables/threads.py.

-- name: snapshot
-- The following statements must see the same rows while months are loaded.
set transaction isolation level repeatable read

-- name: has_changes
select exists (select from thread_changes)

-- name: take_changes
-- In the physical order of the table: nearly that of the months.
delete from thread_changes
 where ctid = any(array(select ctid from thread_changes limit %(most)s))
returning message_id

-- name: take_changes_of
-- Changed messages of some threads.
delete from thread_changes c
 using threads t
 where t.thread_id = any(%(threads)s) and c.message_id = t.message_id
returning c.message_id

-- name: change_all
-- Each message once, ordered by month, so that most threads are built only once.
-- Whole corpus: threads are built for the first time, or by another version of the code.
with noted as (
    delete from thread_changes)
insert into thread_changes
select message_id
  from (select message_id, min(month) as month
          from messages
         group by message_id
        union all
        select message_id, ''
          from threads t
         where not is_ghost
           and not exists (select from messages m where m.message_id = t.message_id)
        union all
        -- threads of ghosts alone, to which no message refers
        select min(message_id), ''
          from threads
         group by thread_id
        having bool_and(is_ghost)) c
 order by month

-- name: all_nodes
-- Whole corpus: as change_all; the digest starts from these rows.
select message_id, thread_id, parent_id, parent_message_id, root_id, depth, position, is_ghost,
       by_subject
  from threads

-- name: count_aliases
-- Whole corpus: aliases are few; counting differences would miss aliases that move.
select count(*) from thread_aliases

-- name: figures
-- Whole corpus: as change_all.
select count(*) filter (where not is_ghost) as messages,
       count(*) filter (where is_ghost) as ghosts,
       count(distinct thread_id) as threads,
       (select count(*) from thread_aliases) as aliases
  from threads

-- name: touched
-- Threads of changed messages, of all messages that these name now, and of answers without a known
-- parent that may join them by subject. Threads that they named or joined before need no search:
-- the messages are still in them.
with named as materialized (
    select unnest(%(changed)s::text[]) as id
    union
    select unnest(m.refs || m.in_reply_to)
      from messages m
     where m.message_id = any(%(changed)s))
select t.thread_id
  from named n
  join threads t on t.message_id = n.id
union
select t.thread_id
  from named n
  join thread_aliases a using (id)
  join threads t on t.message_id = a.message_id
union
select t.thread_id
  from (select list, topic, min(sent_at) as first, max(sent_at) as last
          from messages
         where message_id = any(%(changed)s) and topic <> ''
         group by list, topic) c
  join messages m on (m.list, m.topic) = (c.list, c.topic) and m.topic <> '' and m.is_answer
                 and m.sent_at between c.first and c.last + make_interval(secs => %(span)s)
  join threads t on t.message_id = m.message_id and (t.by_subject or t.parent_id is null)

-- name: holding
-- Threads that contain some ids or have them as aliases.
select thread_id from threads where message_id = any(%(ids)s)
union
select t.thread_id
  from thread_aliases a
  join threads t using (message_id)
 where a.id = any(%(ids)s)

-- name: naming
-- Threads with messages that name one of the ids.
select distinct t.thread_id
  from messages m
  join threads t using (message_id)
 where (m.refs || m.in_reply_to) && %(ids)s::text[]

-- name: speaking
-- Threads with a message of a topic, in a list and a span of time.
select distinct t.thread_id
  from unnest(%(lists)s::text[], %(topics)s::text[], %(firsts)s::float8[], %(lasts)s::float8[])
       as w (list, topic, first, last)
  join messages m on (m.list, m.topic) = (w.list, w.topic) and m.topic <> ''
                 and m.sent_at between to_timestamp(w.first) and to_timestamp(w.last)
  join threads t using (message_id)

-- name: standing
select message_id from threads where message_id = any(%(ids)s)

-- name: threads_of
select distinct thread_id from threads where message_id = any(%(ids)s)

-- name: nodes
-- In order; of all threads if none is named.
select message_id, thread_id, parent_id, parent_message_id, root_id, depth, position, is_ghost,
       by_subject
  from threads
 where %(threads)s::text[] is null or thread_id = any(%(threads)s)
 order by thread_id, position

-- name: aliases
select id, message_id, named
  from thread_aliases
 where %(message_ids)s::text[] is null or message_id = any(%(message_ids)s)

-- name: references
-- All copies: choose_copies decides which one counts. The time of the first load is not used, because
-- it says nothing about the order of messages.
select m.message_id, m.refs, m.in_reply_to, extract(epoch from m.sent_at)::float8,
       extract(epoch from m.arrived_at)::float8, break_tie(m.list, m.month, m.variant),
       m.list, m.topic, m.is_answer,
       extract(epoch from case m.arrival_source when 'loaded' then m.sent_at
                                                else m.arrived_at end)::float8,
       coalesce(c.place, 0)
  from messages m
  left join contested_texts c using (message_id, list, month, variant)
 where %(message_ids)s::text[] is null or m.message_id = any(%(message_ids)s)

-- name: stage
create temporary table threads_stage (like threads) on commit drop

-- name: copy
copy threads_stage (message_id, thread_id, parent_id, parent_message_id, root_id, depth,
                    position, is_ghost, by_subject)
from stdin

-- name: upsert
insert into threads
select * from threads_stage
on conflict (message_id) do update
   set thread_id = excluded.thread_id, parent_id = excluded.parent_id,
       parent_message_id = excluded.parent_message_id, root_id = excluded.root_id,
       depth = excluded.depth, position = excluded.position, is_ghost = excluded.is_ghost,
       by_subject = excluded.by_subject

-- name: delete
delete from threads where message_id = any(%(ids)s)

-- name: upsert_aliases
insert into thread_aliases
select * from unnest(%(ids)s::text[], %(message_ids)s::text[], %(named)s::boolean[])
on conflict (id) do update set message_id = excluded.message_id, named = excluded.named

-- name: delete_aliases
delete from thread_aliases where id = any(%(ids)s)
