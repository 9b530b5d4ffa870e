-- The whole corpus at once. Used by store/threads.py.

-- name: references
select message_id, refs, in_reply_to, extract(epoch from sent_at)::float8
  from messages
 where variant = 0

-- name: stage
create temporary table threads_stage (like threads) on commit drop

-- name: copy
copy threads_stage (message_id, thread_id, parent_id, parent_message_id, root_id, depth,
                    position, is_ghost)
from stdin

-- name: analyze_stage
analyze threads_stage

-- name: upsert
insert into threads
select s.*
  from threads_stage s
 where not exists (
       select from threads t
        where t.message_id = s.message_id
          and (t.thread_id, t.parent_id, t.parent_message_id, t.root_id, t.depth, t.position,
               t.is_ghost)
              is not distinct from
              (s.thread_id, s.parent_id, s.parent_message_id, s.root_id, s.depth, s.position,
               s.is_ghost))
on conflict (message_id) do update
   set thread_id = excluded.thread_id, parent_id = excluded.parent_id,
       parent_message_id = excluded.parent_message_id, root_id = excluded.root_id,
       depth = excluded.depth, position = excluded.position, is_ghost = excluded.is_ghost

-- name: delete_vanished
delete from threads t
 where not exists (select from threads_stage s where s.message_id = t.message_id)

-- name: count
select count(distinct thread_id) from threads

-- name: sample
-- The longest threads.
select t.thread_id, count(*) as messages, max(t.depth) as depth, min(m.subject_base) as subject
  from threads t
  left join messages m on m.message_id = t.thread_id and m.variant = 0
 where not t.is_ghost
 group by t.thread_id
 order by messages desc, t.thread_id
 limit 5
