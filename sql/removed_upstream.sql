-- Messages that archives no longer hold, and former archives. Used by tables/removed_upstream.py.

-- name: record
insert into removed_upstream (list, month, digest, message_id, former_key)
values (%(list)s, %(month)s, %(digest)s, %(message_id)s, %(former_key)s)
on conflict do nothing

-- name: forget_returned
delete from removed_upstream
 where list = %(list)s and month = %(month)s and digest = any(%(digests)s)

-- name: digests
select digest from removed_upstream where list = %(list)s and month = %(month)s

-- name: of_message
select r.list, r.month, r.noticed_at, f.kept_until
  from removed_upstream r
  left join former_archives f on f.object_key = r.former_key
 where r.message_id = %(message_id)s
 order by r.list, r.month

-- name: delete_messages
delete from removed_upstream where message_id = any(%(message_ids)s)
returning list, month, message_id

-- name: former_of_lost
select f.object_key, f.list, f.month
  from former_archives f
 where exists (
       select from cut_messages c
        where c.list = f.list and c.month = f.month and c.removal = any(%(removals)s))
    or %(of_senders)s and exists (
       select from removed_upstream r where r.list = f.list and r.month = f.month)
 order by f.list, f.month, f.object_key

-- name: keep_former
insert into former_archives (object_key, list, month, kept_until)
values (%(object_key)s, %(list)s, %(month)s, now() + make_interval(days => %(days)s))
on conflict (object_key) do update set kept_until = excluded.kept_until

-- name: kept_former
-- Those of a month that are to be kept for some days yet.
select object_key from former_archives
 where list = %(list)s and month = %(month)s
   and kept_until > clock_timestamp()

-- name: former_among
select object_key
  from former_archives
 where object_key = any(%(keys)s)
   and object_key not in (select object_key from mbox_archives where object_key is not null)
 order by object_key

-- name: expired
select object_key, list, month from former_archives
 where kept_until <= clock_timestamp()

-- name: drop_former
delete from former_archives where object_key = %(object_key)s

-- name: replace_former
-- Two files may be the same one without what was cut out of them.
insert into former_archives as f (object_key, list, month, kept_until)
select %(new_key)s, list, month, kept_until from former_archives where object_key = %(object_key)s
on conflict (object_key) do update
   set kept_until = greatest(f.kept_until, excluded.kept_until)

-- name: replace_former_key
update removed_upstream set former_key = %(new_key)s where former_key = %(object_key)s
