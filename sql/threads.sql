-- Threads: building those that changed, and reading one. Used by tables/threads.py and
-- reading/conversations.py.

-- name: snapshot
-- What is read below must fit together, whatever months are loaded meanwhile.
set transaction isolation level repeatable read

-- name: has_changes
select exists (select from thread_changes)

-- name: take_changes
-- So many, in the order in which they were noted, which is nearly that of the months.
delete from thread_changes
 where ctid = any(array(select ctid from thread_changes limit %(most)s))
returning message_id

-- name: take_changes_of
-- Those of the messages of some threads.
delete from thread_changes c
 using threads t
 where t.thread_id = any(%(threads)s) and c.message_id = t.message_id
returning c.message_id

-- name: change_all
-- Each message once, by month: of most threads all messages are then worked off together.
-- Whole corpus: threads are built for the first time, or by another version.
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
           and not exists (select from messages m where m.message_id = t.message_id)) c
 order by month

-- name: all_nodes
-- Whole corpus: as change_all; the rows that the digest goes on from.
select message_id, thread_id, parent_id, parent_message_id, root_id, depth, position, is_ghost
  from threads

-- name: count_aliases
-- Whole corpus: aliases are a small part of it, and to add up differences would miss those that move.
select count(*) from thread_aliases

-- name: figures
-- Whole corpus: as change_all.
select count(*) filter (where not is_ghost) as messages,
       count(*) filter (where is_ghost) as ghosts,
       count(distinct thread_id) as threads,
       (select count(*) from thread_aliases) as aliases
  from threads

-- name: touched
-- The threads of changed messages, and of all that these name now. What they named before
-- is in their old threads.
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

-- name: threads_of
select distinct thread_id from threads where message_id = any(%(ids)s)

-- name: nodes
-- In order; of all threads where none is named.
select message_id, thread_id, parent_id, parent_message_id, root_id, depth, position, is_ghost
  from threads
 where %(threads)s::text[] is null or thread_id = any(%(threads)s)
 order by thread_id, position

-- name: aliases
select id, message_id, named
  from thread_aliases
 where %(message_ids)s::text[] is null or message_id = any(%(message_ids)s)

-- name: references
-- Of each month the first content that is stored under an id: one before it may be forgotten.
select m.message_id, m.refs, m.in_reply_to, extract(epoch from m.sent_at)::float8
  from messages m
 where (m.variant = 0
        or not exists (
           select from messages o
            where (o.list, o.month, o.message_id) = (m.list, m.month, m.message_id)
              and o.variant < m.variant))
   and (%(message_ids)s::text[] is null or m.message_id = any(%(message_ids)s))

-- name: stage
create temporary table threads_stage (like threads) on commit drop

-- name: copy
copy threads_stage (message_id, thread_id, parent_id, parent_message_id, root_id, depth,
                    position, is_ghost)
from stdin

-- name: upsert
insert into threads
select * from threads_stage
on conflict (message_id) do update
   set thread_id = excluded.thread_id, parent_id = excluded.parent_id,
       parent_message_id = excluded.parent_message_id, root_id = excluded.root_id,
       depth = excluded.depth, position = excluded.position, is_ghost = excluded.is_ghost

-- name: delete
delete from threads where message_id = any(%(ids)s)

-- name: upsert_aliases
insert into thread_aliases
select * from unnest(%(ids)s::text[], %(message_ids)s::text[], %(named)s::boolean[])
on conflict (id) do update set message_id = excluded.message_id, named = excluded.named

-- name: delete_aliases
delete from thread_aliases where id = any(%(ids)s)

-- name: count
-- As the last build recorded it.
select (counts->>'threads')::int from partitions where asset = 'threads' and list is null

-- name: resolve
-- The thread that an id is in, or leads to, and its position there.
select thread_id, position from threads where message_id = %(id)s
union all
select t.thread_id, t.position
  from thread_aliases a
  join threads t using (message_id)
 where a.id = %(id)s

-- name: conversation
-- The nodes of a thread in order, with the earliest copy of its message and all its places: so many
-- from a position on, and of each text so many characters; null is no bound. A message that has
-- gone since threads were built is a ghost here, as it is in the next build.
select t.position, t.depth, t.message_id, t.is_ghost or m.message_id is null as is_ghost,
       t.parent_id, t.parent_message_id,
       coalesce(places.archives, '{}') as archives,
       m.from_name, m.from_email, m.sent_at, m.subject, m.subject_base,
       coalesce(left(m.body_text, %(characters)s), m.body_text) as body_text,
       char_length(m.body_text) as characters, m.segments, m.attachments
  from threads t
  left join lateral (
       select array_agg(distinct c.list || '|' || c.month) as archives
         from messages c
        where c.message_id = t.message_id) places on true
  left join lateral (
       select c.*
         from messages c
        where c.message_id = t.message_id
        order by c.variant, c.sent_at, c.list, c.month
        limit 1) m on true
 where t.thread_id = %(thread_id)s and t.position >= %(first)s
 order by t.position
 limit %(most)s

-- name: extent
-- How large a thread is, and who wrote in it when; no text is read.
select max(t.position) + 1 as positions,
       count(distinct m.message_id) filter (where not t.is_ghost) as messages,
       count(distinct lower(m.from_email)) as people,
       array_remove(array_agg(distinct m.list), null) as lists,
       min(m.sent_at) as first_sent_at, max(m.sent_at) as last_sent_at,
       coalesce((array_agg(m.subject_base order by t.position, m.variant)
                 filter (where m.message_id is not null))[1], '') as subject_base
  from threads t
  left join messages m on m.message_id = t.message_id
 where t.thread_id = %(thread_id)s

-- name: page_starts
-- The first node of each page of a thread, whose pages have so many positions.
select distinct on (position / %(size)s) message_id
  from threads
 where thread_id = %(thread_id)s
 order by position / %(size)s, position
