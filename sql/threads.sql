-- Threads: building those that changed. Used by tables/threads.py.

-- name: snapshot
-- The statements below must see the same rows while months are loaded.
set transaction isolation level repeatable read

-- name: has_changes
select exists (select from thread_changes)

-- name: take_changes
-- In the order in which they were noted, which is nearly that of the months.
delete from thread_changes
 where ctid = any(array(select ctid from thread_changes limit %(most)s))
returning message_id

-- name: take_changes_of
-- The changed messages of some threads.
delete from thread_changes c
 using threads t
 where t.thread_id = any(%(threads)s) and c.message_id = t.message_id
returning c.message_id

-- name: change_all
-- Each message once, by month, so that most threads are built once.
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
-- Whole corpus: as change_all; the rows that the digest starts from.
select message_id, thread_id, parent_id, parent_message_id, root_id, depth, position, is_ghost
  from threads

-- name: count_aliases
-- Whole corpus: aliases are few, and sums of differences would miss those that move.
select count(*) from thread_aliases

-- name: figures
-- Whole corpus: as change_all.
select count(*) filter (where not is_ghost) as messages,
       count(*) filter (where is_ghost) as ghosts,
       count(distinct thread_id) as threads,
       (select count(*) from thread_aliases) as aliases
  from threads

-- name: touched
-- The threads of changed messages and of all that these name now. What they named before is in
-- their old threads.
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
-- In order; of all threads if none is named.
select message_id, thread_id, parent_id, parent_message_id, root_id, depth, position, is_ghost
  from threads
 where %(threads)s::text[] is null or thread_id = any(%(threads)s)
 order by thread_id, position

-- name: aliases
select id, message_id, named
  from thread_aliases
 where %(message_ids)s::text[] is null or message_id = any(%(message_ids)s)

-- name: references
-- Every copy: choose_copies decides which one counts.
select m.message_id, m.refs, m.in_reply_to, extract(epoch from m.sent_at)::float8,
       extract(epoch from m.arrived_at)::float8, break_tie(m.list, m.month, m.variant)
  from messages m
 where %(message_ids)s::text[] is null or m.message_id = any(%(message_ids)s)

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
