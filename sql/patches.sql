-- Patches of one month. Used by tables/patches.py.

-- name: messages
-- Messages that may have patches. Attached patches are read from the archive, so these messages come
-- with their position there. The pattern of subjects matches more than patches.
select m.message_id, m.variant, m.subject, m.from_name, m.from_email, m.sent_at, m.in_reply_to,
       m.body_text, m.segments,
       case when m.attachments @> '[{"is_patch": true}]' then e.archive_offset end,
       e.archive_length
  from messages m
  left join archive_entries e
    on (e.list, e.month, e.message_id, e.variant)
       = (m.list, m.month, m.message_id, m.variant) and e.outcome = 'stored'
 where m.list = (select %(list)s) and m.month = %(month)s
   and (m.segments @> '[["patch"]]' or m.attachments @> '[{"is_patch": true}]'
        or m.subject ~* '(patch|diff|\d[[:alnum:].]*\s*(/|of\s)\s*[\dnmx?])')
 order by m.message_id collate "C", m.variant

-- name: stage
-- The table is created once per connection, and each transaction empties it.
create temporary table if not exists patches_stage (like patches) on commit delete rows

-- name: copy
copy patches_stage (
       list, month, message_id, variant, place, kind, source, file_name, subject, title, title_key,
       tags, version, part, parts, author_name, author_email, sent_at, patch_id, files, file_count,
       added, removed, line_digests, base_commit, named_commits, change_id, links, changelog,
       malformed, flags)
from stdin

-- name: analyze_stage
-- Only the columns of the key; see chunks.sql.
analyze patches_stage (list, month, message_id, variant, place)

-- name: delete_other
-- Deletes vanished rows, and rows that differ: these are inserted again.
delete from patches p
 where p.list = %(list)s and p.month = %(month)s
   and not exists (
       select from patches_stage s
        where (s.list, s.month, s.message_id, s.variant, s.place)
              = (p.list, p.month, p.message_id, p.variant, p.place)
          and s is not distinct from p)

-- name: insert_new
insert into patches
select s.*
  from patches_stage s
 where not exists (
       select from patches p
        where (p.list, p.month, p.message_id, p.variant, p.place)
              = (s.list, s.month, s.message_id, s.variant, s.place))
 order by s.message_id, s.variant, s.place

-- name: count_gone
-- Rows of a month that are deleted for good, not those that are inserted again.
select count(*)
  from patches p
 where p.list = %(list)s and p.month = %(month)s
   and not exists (
       select from patches_stage s
        where (s.list, s.month, s.message_id, s.variant, s.place)
              = (p.list, p.month, p.message_id, p.variant, p.place))

-- name: digest
-- Digest over the rows of a month. The same expression is in settle, damage.sql and
-- removed_messages.sql.
select encode(sha256(coalesce(string_agg(
           int8send(hash_record_extended(p, 0)), ''::bytea
           order by message_id collate "C", variant, place), '')), 'hex')
  from patches p
 where list = (select %(list)s) and month = %(month)s

-- name: hide_links
-- Removes links to forgotten messages.
-- Whole corpus: somebody is forgotten, and no index has the links.
update patches p
   set links = (
       select coalesce(jsonb_agg(link order by place), '[]')
         from jsonb_array_elements(p.links) with ordinality as l (link, place)
        where link ->> 1 <> all(%(message_ids)s))
 where p.links <> '[]'
   and exists (select from jsonb_array_elements(p.links) as l (link)
                where link ->> 1 = any(%(message_ids)s))
returning list, month

-- name: hide_authors
-- Whole corpus: as hide_links.
update patches
   set author_name = '', author_email = %(nobody)s
 where lower(author_email) = any(%(addresses)s)
returning list, month

-- name: settle
-- Records the digest and counts of months in which something was hidden.
update partitions p
   set digest = o.digest
  from (select w.list, w.month, encode(sha256(string_agg(
                   int8send(hash_record_extended(o, 0)), ''::bytea
                   order by o.message_id collate "C", o.variant, o.place)), 'hex') as digest
          from (select distinct list, month
                  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)) w
          join patches o on (o.list, o.month) = (w.list, w.month)
         group by w.list, w.month) o
 where (p.asset, p.list, p.month) = ('patches', o.list, o.month)

-- name: previous
-- Previous version of a patch in its series. If a mail has several patches, the first one counts.
select s.previous_id
  from patch_series s
 cross join lateral first_shown(s.previous_id)
 where s.message_id = %(message_id)s
 order by s.place
 limit 1

-- name: parts
-- Patches of a series, in order: by the sender of the cover letter, in answer to it.
select distinct on (p.part) p.message_id
  from shown_messages c
 cross join lateral (
       select list, month, message_id, variant, arrived_at
         from shown_messages m
        where m.refs || m.in_reply_to && array[c.message_id]
          and lower(m.from_email) = lower(c.from_email)) m
  join patches p
    on (p.list, p.month, p.message_id, p.variant) = (m.list, m.month, m.message_id, m.variant)
 where c.message_id = %(message_id)s
   and p.kind = 'patch' and p.part > 0 and p.version = %(version)s
 order by p.part, m.arrived_at, p.message_id
