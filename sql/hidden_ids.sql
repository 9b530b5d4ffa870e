-- Placeholders for the ids of forgotten messages in other mail and in threads. Used by
-- tables/hidden_ids.py, from lock_threads on in this order: threads are needed until their aliases
-- are written.

-- name: held
-- The ids that a stored message has.
select distinct message_id from messages where message_id = any(%(message_ids)s)

-- name: lock_threads
-- The lock of the step that builds threads, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('threads', 0))

-- name: replace_ids
-- Placeholders for ids in other mail.
update messages m
   set row_hash = m.row_hash,  -- its trigger sets the checksum
       refs = array(
           select coalesce(h.placeholder, r.x)
             from unnest(m.refs) with ordinality as r (x, place)
             left join unnest(%(message_ids)s::text[], %(placeholders)s::text[])
                       as h (message_id, placeholder) on h.message_id = r.x
            order by r.place),
       in_reply_to = array(
           select coalesce(h.placeholder, r.x)
             from unnest(m.in_reply_to) with ordinality as r (x, place)
             left join unnest(%(message_ids)s::text[], %(placeholders)s::text[])
                       as h (message_id, placeholder) on h.message_id = r.x
            order by r.place)
 where (m.refs || m.in_reply_to) && %(message_ids)s::text[]

-- name: note_changed_threads
-- The threads of forgotten messages are built again without their ids.
insert into thread_changes
select o.message_id
  from threads t
  join threads o using (thread_id)
 where t.message_id = any(%(message_ids)s) and o.message_id <> all(%(message_ids)s)
union
select message_id
  from thread_aliases
 where id = any(%(message_ids)s) and message_id <> all(%(message_ids)s)

-- name: add_aliases
-- A link to a forgotten message still leads to its thread: to the first other message.
insert into thread_aliases (id, message_id, named)
select distinct on (h.placeholder) h.placeholder, o.message_id, false
  from unnest(%(message_ids)s::text[], %(placeholders)s::text[]) as h (message_id, placeholder)
  join threads t on t.message_id = h.message_id
  join threads o on o.thread_id = t.thread_id and not o.is_ghost
 where o.message_id <> all(%(message_ids)s)
 order by h.placeholder, o.position
on conflict (id) do nothing

-- name: redirect_aliases
-- Aliases of a forgotten message lead to the first other message of the thread.
update thread_aliases a
   set message_id = (
       select o.message_id
         from threads t
         join threads o on o.thread_id = t.thread_id and not o.is_ghost
        where t.message_id = a.message_id and o.message_id <> all(%(message_ids)s)
        order by o.position
        limit 1)
 where a.message_id = any(%(message_ids)s)
   and exists (
       select from threads t
         join threads o on o.thread_id = t.thread_id and not o.is_ghost
        where t.message_id = a.message_id and o.message_id <> all(%(message_ids)s))

-- name: delete_aliases
delete from thread_aliases where id = any(%(message_ids)s) or message_id = any(%(message_ids)s)

-- name: delete_changes
delete from thread_changes c
 where c.message_id = any(%(message_ids)s)
   and not exists (select from messages m where m.message_id = c.message_id)
