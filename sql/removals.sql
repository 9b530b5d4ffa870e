-- What was forgotten, and keeping it so. Used by tables/removals.py.

-- name: load_lock
-- Held by a month that is being loaded, until its transaction ends.
select pg_advisory_xact_lock_shared(hashtextextended('removals', 0))

-- name: forget_lock
-- No month is loaded while something is added to the removals: what it has read of them stays
-- true until its rows are there.
select pg_advisory_xact_lock(hashtextextended('removals', 0))

-- name: forgotten
select kind = 'message' as message, digest from removals

-- name: forgotten_ids
select digest from removals where kind = 'message'
union
select message_digest from removed_messages where message_digest is not null

-- name: add
insert into removals (digest, kind, reason, removed_by)
values (%(digest)s, %(kind)s, %(reason)s, %(removed_by)s)
on conflict (digest) do nothing

-- name: list
select digest, kind, reason, removed_by, removed_at,
       (select count(*) from removed_messages where removal = digest) as copies
  from removals
 order by removed_at, digest

-- name: take_back
delete from removals where digest = any(%(digests)s)

-- name: show_ids
-- Their ids are no longer hidden, in whatever order the months are loaded.
update removed_messages set message_digest = null where removal = any(%(digests)s)

-- name: load_again
-- The months that left a message out for these removals, or name one by its stand-in, are no
-- longer made from what they were made from.
update partitions p
   set inputs = p.inputs || ', with removals since taken back'
 where p.asset = 'messages'
   and (exists (
           select from removed_messages r
            where r.list = p.list and r.month = p.month and r.removal = any(%(digests)s))
        or exists (
           select from messages m
            where m.list = p.list and m.month = p.month
              and (m.refs && %(stand_ins)s or m.in_reply_to && %(stand_ins)s)))
returning list, month

-- name: stand_ins
-- The digests of all ids that removals keep out.
select message_digest
  from removed_messages
 where removal = any(%(digests)s) and message_digest is not null

-- name: copies
select list, month, message_id, variant, content_hash, ordinal, from_email
  from messages
 where message_id = any(%(message_ids)s) or lower(from_email) = any(%(senders)s)
 order by list, month, ordinal

-- name: months
-- The months that something was removed from.
select distinct list, month from removed_messages order by list, month

-- name: delete_messages
delete from messages m
 using unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
              %(variants)s::smallint[]) as d (list, month, message_id, variant)
 where (m.list, m.month, m.message_id, m.variant) = (d.list, d.month, d.message_id, d.variant)

-- name: delete_chunks
delete from chunks
 where split_part(key, '#', 1) = any(%(key_prefixes)s) and message_id = any(%(message_ids)s)

-- name: remove
insert into removed_messages (list, month, ordinal, removal, message_digest, key_prefix)
values (%(list)s, %(month)s, %(ordinal)s, %(removal)s, %(message_digest)s, %(key_prefix)s)
on conflict do nothing

-- name: clear_removed
delete from removed_messages where list = %(list)s and month = %(month)s

-- name: threads_lock
-- That of the threads step, until the transaction ends: its rows are about to be changed.
select pg_advisory_xact_lock(hashtextextended('threads', 0))

-- name: hide
-- Stand-ins for ids in the mail of others. Reads every row: no index knows who names whom
-- before threads are built. The hash changes too, or a row would count as what it was.
update messages m
   set row_hash = sha256(m.row_hash),
       refs = array(
           select coalesce(h.stand_in, r.x)
             from unnest(m.refs) with ordinality as r (x, place)
             left join unnest(%(message_ids)s::text[], %(stand_ins)s::text[])
                       as h (message_id, stand_in) on h.message_id = r.x
            order by r.place),
       in_reply_to = array(
           select coalesce(h.stand_in, r.x)
             from unnest(m.in_reply_to) with ordinality as r (x, place)
             left join unnest(%(message_ids)s::text[], %(stand_ins)s::text[])
                       as h (message_id, stand_in) on h.message_id = r.x
            order by r.place)
 where m.refs && %(message_ids)s::text[] or m.in_reply_to && %(message_ids)s::text[]

-- name: note_threads
-- All of the threads of forgotten messages are to be built anew, and without their ids.
insert into thread_changes
select t.message_id
  from threads t
 where t.message_id <> all(%(message_ids)s)
   and (t.thread_id in (select thread_id from threads where message_id = any(%(message_ids)s))
        or t.message_id in (select message_id from thread_aliases
                             where id = any(%(message_ids)s)))

-- name: forget_changes
delete from thread_changes c
 where c.message_id = any(%(message_ids)s)
   and not exists (select from messages m where m.message_id = c.message_id)

-- name: lead_on
-- A link to a forgotten message still leads to its thread: to the message that stands first.
insert into thread_aliases (id, message_id, named)
select distinct on (h.stand_in) h.stand_in, o.message_id, false
  from unnest(%(message_ids)s::text[], %(stand_ins)s::text[]) as h (message_id, stand_in)
  join threads t on t.message_id = h.message_id
  join threads o on o.thread_id = t.thread_id and not o.is_ghost
 where o.message_id <> all(%(message_ids)s)
 order by h.stand_in, o.position
on conflict (id) do nothing

-- name: lead_elsewhere
-- What led to a forgotten message leads to the one that stands first beside it.
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

-- name: forget_aliases
delete from thread_aliases where id = any(%(message_ids)s) or message_id = any(%(message_ids)s)

-- name: forget_threads
delete from threads where message_id = any(%(message_ids)s)

-- name: recount
-- The figures of a month are those of what it holds now. It is no longer what it was made from,
-- nor is what was made from it: else nothing would be done where the message is taken back. The
-- inputs keep their first word, an archive, and their last, an encoder.
update partitions p
   set inputs = case when p.asset in ('chunks', 'embeddings') then 'less ' else '' end || p.inputs,
       digest = case when p.asset in ('messages', 'chunks')
                     then encode(sha256(convert_to('less ' || p.digest, 'UTF8')), 'hex')
                     else p.digest end,
       counts = p.counts || case p.asset
       when 'messages' then jsonb_build_object(
           'stored', (select count(*) from messages m where (m.list, m.month) = (p.list, p.month)),
           'removed', (select count(*) from removed_messages r
                        where (r.list, r.month) = (p.list, p.month)))
       when 'embeddings' then jsonb_build_object(
           'texts', (select count(distinct c.text_hash) from chunks c
                      where (c.list, c.month) = (p.list, p.month)))
       else jsonb_build_object(
           'chunks', (select count(*) from chunks c where (c.list, c.month) = (p.list, p.month)))
       end
 where p.list = %(list)s and p.month = %(month)s
   and p.asset in ('messages', 'chunks', 'embeddings', 'vectors')

-- name: unwanted
-- Keys of forgotten messages that some index still has, or may have.
select v.index_name, array_agg(v.key order by v.key)
  from vectors v
  join (select distinct list, month, key_prefix from removed_messages) r
    on v.list = r.list and v.month = r.month and split_part(v.key, '#', 1) = r.key_prefix
 group by v.index_name
 order by v.index_name

-- name: text_hashes
select distinct text_hash from chunks where list = %(list)s and month = %(month)s
