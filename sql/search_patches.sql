-- Patches, their versions and the commits that they became, for search. Used by search/.

-- name: commit_ids
-- The mails of the commits whose ids begin so: the patch that was applied, its other versions,
-- discussions and reports. Ids that several texts claim are linked to nothing.
select distinct k.message_id
  from commits c
  join commit_links k using (repository, sha)
 where c.sha ~>=~ %(prefix)s and c.sha ~<~ (%(prefix)s || 'g') and c.list = any((select shown_lists())::text[])
   and k.kind <> 'missing'
   and not exists (select from shown_texts t where t.message_id = k.message_id)

-- name: commits_named
-- The commits whose ids begin so, up to a limit, each with whether a mail is linked to it.
select c.sha,
       exists (select
                 from commit_links k
                 join shown_messages m using (message_id)
                where (k.repository, k.sha) = (c.repository, c.sha))
  from commits c
 where c.sha ~>=~ %(prefix)s and c.sha ~<~ (%(prefix)s || 'g') and c.list = any((select shown_lists())::text[])
 order by c.sha, c.repository
 limit %(most)s

-- name: has_commits
select exists (select from commits where list = any((select shown_lists())::text[]))

-- name: applied
select distinct message_id from applied_patches limit %(most)s

-- name: open
select message_id from open_patches limit %(most)s

-- name: latest
select distinct message_id from latest_patches limit %(most)s

-- name: page_patches
-- The versions of the patches of some mails, oldest first, each with what became of it; of a mail
-- with several patches those of the first. The copy is that which arrived first, of those shown.
select w.id, s.message_id = s.series_id or exists (
           select from shown_messages f where f.message_id = s.series_id) as is_series_shown,
       s.series_id, p.kind, o.message_id, q.version,
       case when r.message_id is null then 'open' else o.state end as state,
       case when r.message_id is null then '{}' else o.shas end as said, r.sent_at as said_at,
       c.shas, c.committed_at,
       q.kind = 'cover' and (
           select count(*) = q.parts
                  and bool_and(exists (select from applied_parts a where a.message_id = x.message_id))
             from patch_series x
            where x.series_id = o.series_id and x.posting = o.posting
              and x.message_id <> o.message_id and not x.is_remark) as is_cover_applied
  from unnest(%(message_ids)s::text[]) as w (id)
 cross join lateral (
       select *
         from patch_series
        where message_id = w.id and not is_remark
        order by place
        limit 1) s
 cross join lateral first_shown(s.message_id) m
  join patches p
    on (p.list, p.month, p.message_id, p.variant, p.place)
       = (m.list, m.month, m.message_id, m.variant, s.place)
  join patch_series o
    on (o.series_id, o.change) = (s.series_id, s.change) and not o.is_remark
 cross join lateral first_shown(o.message_id) n
  join patches q
    on (q.list, q.month, q.message_id, q.variant, q.place)
       = (n.list, n.month, n.message_id, n.variant, o.place)
  left join lateral first_shown(o.reason_id) r on true
 cross join lateral (
       select array_agg(b.sha order by b.committed_at, b.sha) as shas,
              max(b.committed_at) as committed_at
         from commit_links k
         join commits b using (repository, sha)
        where k.message_id = o.message_id and k.kind = 'applied' and q.kind = 'patch'
          and b.list = any((select shown_lists())::text[])
          and (b.patch_id = q.patch_id or b.title_key = q.title_key
               or not exists (select from patches x
                               where (x.list, x.month, x.message_id, x.variant)
                                     = (q.list, q.month, q.message_id, q.variant)
                                 and x.place <> q.place))) c
 order by w.id, o.posting, o.message_id, o.place

-- name: found_versions
-- The mails among some that have one patch each, of which others among them have another version.
with found as materialized (
    select s.message_id, s.series_id, s.change, s.posting
      from (select message_id, min(place) as place
              from patch_series
             where message_id = any(%(message_ids)s) and not is_remark
             group by message_id
            having count(*) = 1) w
      join patch_series s using (message_id, place)),
versions as (
    select *, count(*) over (partition by series_id, change) as versions from found)
select message_id, series_id, change, posting,
       exists (select from applied_parts a where a.message_id = v.message_id)
  from versions v
 where versions > 1

-- name: versions_of
-- All versions of the patches of some mails that have one patch each.
select distinct o.message_id, o.series_id, o.change, o.posting,
       exists (select from applied_parts a where a.message_id = o.message_id)
  from (select message_id, min(place) as place
          from patch_series
         where message_id = any(%(message_ids)s) and not is_remark
         group by message_id
        having count(*) = 1) w
  join patch_series s using (message_id, place)
  join patch_series o
    on (o.series_id, o.change) = (s.series_id, s.change) and not o.is_remark

-- name: commit_subjects
-- The patches that became commits with one of these titles, of the newest commits. A commit's subject
-- may not be that of its patch.
select m.message_id, m.list, m.month, m.variant
  from (select repository, sha, committed_at
          from commits
         where title_key = any(%(title_keys)s) and list = any((select shown_lists())::text[])
         order by committed_at desc, sha
         limit %(most)s) c
  join commit_links k using (repository, sha)
 cross join lateral (
       select *
         from messages m
        where m.message_id = k.message_id and {passes}
        order by m.arrived_at, m.list
        limit 1) m
 where k.kind = 'applied'
   and not exists (select from shown_texts o where o.message_id = m.message_id offset 0)
 order by c.committed_at desc, c.sha, k.place
 limit %(most)s
