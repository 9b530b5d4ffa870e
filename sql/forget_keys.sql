-- Which key the digests of forgotten mail are made with. Used by tables/forget_keys.py.

-- name: read
select check_value from forget_keys

-- name: write
insert into forget_keys (check_value) values (%(check_value)s)

-- name: has_removals
select exists (select from removals)

-- name: old_digests
-- All digests of a version that had no key.
select digest from removals
union
select removal from removed_messages
union -- cut_messages are younger than the key
select message_digest from removed_messages where message_digest is not null

-- name: rekey_removals
update removals r
   set digest = n.new
  from unnest(%(old)s::bytea[], %(new)s::bytea[]) as n (old, new)
 where r.digest = n.old

-- name: rekey_removed_messages
update removed_messages r
   set removal = n.new,
       message_digest = (
           select d.new
             from unnest(%(old)s::bytea[], %(new)s::bytea[]) as d (old, new)
            where d.old = r.message_digest)
  from unnest(%(old)s::bytea[], %(new)s::bytea[]) as n (old, new)
 where r.removal = n.old

-- name: rename_aliases
-- Of forgotten messages that nothing names: a link to them still leads to their thread.
update thread_aliases a
   set id = n.new
  from unnest(%(old)s::text[], %(new)s::text[]) as n (old, new)
 where a.id = n.old
