-- Patches, their versions and the commits that they became, for search. Used by search/.

-- name: commit_ids
-- Mails of commits whose id begins with a prefix: the applied patch, its other versions, discussions
-- and reports. Contested ids are left out.
select distinct k.message_id
  from commits c
  join commit_links k using (repository, sha)
 where c.sha ~>=~ %(prefix)s and c.sha ~<~ (%(prefix)s || 'g') and c.list = any((select shown_lists())::text[])
   and k.kind <> 'missing'
   and not exists (select from shown_texts t where t.message_id = k.message_id)

-- name: commits_named
-- Commits whose id begins with a prefix, and whether a mail is linked to each.
select c.sha,
       exists (select
                 from commit_links k
                 join shown_messages m using (message_id)
                where (k.repository, k.sha) = (c.repository, c.sha))
  from commits c
 where c.sha ~>=~ %(prefix)s and c.sha ~<~ (%(prefix)s || 'g') and c.list = any((select shown_lists())::text[])
 order by c.sha, c.repository
 limit %(most)s

-- name: changed_file
-- Mails of commits that change a file whose path contains a text. Where addresses are hidden, a match
-- inside an address does not count.
select distinct k.message_id
  from commits c
  join commit_links k using (repository, sha)
 where c.changed_names like like_pattern(%(part)s) and c.list = any((select shown_lists())::text[])
   and k.kind <> 'missing'
   and changes_file(c.changed_names, %(part)s, %(hidden)s)
   and not exists (select from shown_texts t where t.message_id = k.message_id)
 limit %(most)s

-- name: reasons
-- Commits of some mails that change a matching file (by a part of its path) or a named file or
-- function, newest first, each with the first line that matches.
select k.message_id, c.sha, n.line
  from (select distinct message_id, repository, sha
          from commit_links
         where message_id = any(%(message_ids)s) and kind <> 'missing') k
  join commits c using (repository, sha)
 cross join lateral (
       select line
         from regexp_split_to_table(c.changed_names, e'\n') as l (line)
        where e'\n' || line || e'\n' like any(%(names)s::text[])
           or exists (
              select from unnest(%(parts)s::text[]) as p (part)
               where changes_file(line, p.part, %(hidden)s) and line not like '%%()')
        limit 1) n
 where c.list = any((select shown_lists())::text[])
 order by k.message_id, c.committed_at desc, c.sha

-- name: has_patches
select exists (select from patch_series)

-- name: has_commits
-- max reads the newest month of each list from an index.
select exists (
    select from unnest((select shown_lists())::text[]) as shown (list)
     cross join lateral (select max(month) as month from commits c where c.list = shown.list) newest
     where newest.month is not null)

-- name: in_state
select message_id from shown_patch_states where state = %(state)s limit %(most)s

-- name: found_versions
-- Of some mails with one patch each: those that have other versions among these mails.
with found as materialized (
    select s.message_id, s.series_id, s.change, s.posting, not s.by_stranger as is_own
      from (select message_id, min(place) as place
              from patch_series
             where message_id = any(array(select json_array_elements_text(%(message_ids)s)))
               and not is_remark
             group by message_id
            having count(*) = 1) w
      join patch_series s using (message_id, place)),
versions as (
    select *, count(*) over (partition by series_id, change) as versions from found)
select message_id, series_id, change, posting,
       exists (select from applied_parts a where a.message_id = v.message_id),
       is_own
  from versions v
 where versions > 1

-- name: versions_of
-- All versions of the patches of mails with one patch each.
select distinct o.message_id, o.series_id, o.change, o.posting,
       exists (select from applied_parts a where a.message_id = o.message_id),
       not o.by_stranger
  from (select message_id, min(place) as place
          from patch_series
         where message_id = any(array(select json_array_elements_text(%(message_ids)s)))
           and not is_remark
         group by message_id
        having count(*) = 1) w
  join patch_series s using (message_id, place)
  join patch_series o
    on (o.series_id, o.change) = (s.series_id, s.change) and not o.is_remark
