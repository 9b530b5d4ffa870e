-- Removals, the key of their digests, and messages cut out of stored archives. Used by
-- tables/removals.py.

-- name: lock_for_load
-- Taken by the load of a month, until its transaction ends.
select pg_advisory_xact_lock_shared(hashtextextended('removals', 0))

-- name: lock_for_forgetting
-- Loads wait while removals are added: the removals that a load has read must stay complete until its
-- rows are written.
select pg_advisory_xact_lock(hashtextextended('removals', 0))

-- name: try_lock_for_forgetting
-- Like lock_for_forgetting, without waiting; returns whether it was free.
select pg_try_advisory_xact_lock(hashtextextended('removals', 0))

-- name: forgotten
select kind = 'message' as message, digest from removals

-- name: forgotten_ids
select digest from removals where kind = 'message'
union
select message_digest from left_out where message_digest is not null

-- name: add
insert into removals (digest, kind, reason, removed_by, cut)
values (%(digest)s, %(kind)s, %(reason)s, %(removed_by)s, %(cut)s)
on conflict (digest) do update
   set cut = true
 where excluded.cut and not removals.cut

-- name: list
select digest, kind, reason, removed_by, removed_at,
       (select count(*) from left_out where removal = digest) as copies
  from removals
 order by removed_at, digest

-- name: delete
delete from removals where digest = any(%(digests)s)

-- name: reveal_ids
-- Stops hiding the ids. The order in which months are loaded does not matter.
update removed_messages set message_digest = null where removal = any(%(digests)s)

-- name: show_removed
-- Stops hiding ids that a stored message also has.
update removed_messages set message_digest = null where message_digest = any(%(digests)s)

-- name: show_cut
update cut_messages set message_digest = null where message_digest = any(%(digests)s)

-- name: mark_for_reload
-- Changes the inputs of months that left a message out for these removals, or that have one of their
-- placeholders.
-- Whole corpus: a removal is withdrawn; the receivers of a sender's mail are not known.
update partitions p
   set inputs = p.inputs || %(load_again)s
 where p.asset = 'messages'
   and (exists (
           select from left_out r
            where r.list = p.list and r.month = p.month and r.removal = any(%(digests)s))
        or exists (
           select from messages m
            where m.list = p.list and m.month = p.month
              and (m.refs || m.in_reply_to) && %(placeholders)s)
        -- all forgotten people have the same placeholder
        or exists (select from removals where kind = 'sender' and digest = any(%(digests)s))
           and exists (
               select from messages m
                where m.list = p.list and m.month = p.month
                  and %(nobody)s = any(m.reply_to || m.recipients || m.cc)))
returning list, month

-- name: mark_rows
-- Rows with such a placeholder are written again.
-- Whole corpus: as mark_for_reload.
update messages
   set row_hash = ''
 where (refs || in_reply_to) && %(placeholders)s
    or (exists (select from removals where kind = 'sender' and digest = any(%(digests)s))
        and %(nobody)s = any(reply_to || recipients || cc))

-- name: hidden_digests
-- Digests of all ids that removals keep out.
select message_digest
  from left_out
 where removal = any(%(digests)s) and message_digest is not null

-- name: read_check_value
select check_value from forget_keys

-- name: write_check_value
insert into forget_keys (check_value) values (%(check_value)s)

-- name: record_cut
insert into cut_messages (list, month, key_prefix, removal, message_digest)
values (%(list)s, %(month)s, %(key_prefix)s, %(removal)s, %(message_digest)s)
on conflict (list, month, key_prefix) do update
   set removal = excluded.removal, message_digest = excluded.message_digest

-- name: cut_digests
-- Digests of mail that was cut out of stored archives.
select kind = 'message' as message, digest from removals where cut

-- name: uncut_months
-- Months whose archive has mail that is to be cut out, and months whose files may again have mail that
-- was cut out for some removals.
select r.list, r.month
  from removed_messages r
  join removals on digest = removal
 where removals.cut
union
select c.list, c.month
  from cut_messages c
  join removals on digest = removal
 where removals.cut and c.removal = any(%(removals)s)
 order by list, month

-- name: months_holding
-- Months whose archive has mail that some removals keep out.
select distinct list, month
  from removed_messages
 where removal = any(%(removals)s)
 order by list, month

-- name: drop_reused
-- Deletes keys that a stored message has now. It is the first with its id, as the forgotten one was.
delete from cut_messages c
 where c.list = %(list)s and c.month = %(month)s
   and c.key_prefix in (
       select message_key(m.list, m.month, m.message_id, m.variant, m.content_hash)
         from messages m
        where m.list = (select %(list)s) and m.month = %(month)s)

-- name: fetch_again
-- Archives of months that mail was cut out of are fetched again.
update mbox_archives a
   set version = '', content_sha256 = '', checksum = 0  -- a trigger replaces this
 where exists (
       select from cut_messages c
        where c.list = a.list and c.month = a.month and c.removal = any(%(digests)s))
returning list, month

-- name: delete_cut
delete from cut_messages where removal = any(%(digests)s)
