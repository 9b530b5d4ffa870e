-- Messages cut out of the stored archives. Used by tables/cut_messages.py.

-- name: record
insert into cut_messages (list, month, key_prefix, removal, message_digest)
values (%(list)s, %(month)s, %(key_prefix)s, %(removal)s, %(message_digest)s)
on conflict (list, month, key_prefix) do update
   set removal = excluded.removal, message_digest = excluded.message_digest

-- name: forgotten
-- What archives are stored without.
select kind = 'message' as message, digest from removals where cut

-- name: uncut_months
-- The months whose messages were last read from an archive that holds what is to be cut out, and
-- those whose files may hold again what some removals had cut out of them.
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
-- The months whose archive holds what some removals keep out.
select distinct list, month
  from removed_messages
 where removal = any(%(removals)s)
 order by list, month

-- name: drop_reused
-- A key that a message of the month has now: it is the first under its id, as the forgotten one was.
delete from cut_messages c
 where c.list = %(list)s and c.month = %(month)s
   and c.key_prefix in (
       select left(encode(sha256(convert_to(
                  m.list || '|' || m.month || '|' || m.message_id
                  || case when m.variant > 0 then ' ' || m.content_hash else '' end,
                  'UTF8')), 'hex'), 32)
         from messages m
        where m.list = (select %(list)s) and m.month = %(month)s)

-- name: fetch_again
-- The archives of months that something was cut out of are fetched whole again.
update mbox_archives a
   set version = '', content_sha256 = ''
 where exists (
       select from cut_messages c
        where c.list = a.list and c.month = a.month and c.removal = any(%(digests)s))
returning list, month

-- name: delete
delete from cut_messages where removal = any(%(digests)s)
