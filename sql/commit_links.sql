-- Links of commits to messages. Used by tables/commits.py.

-- name: changed_months
-- Months of commits, patches and messages that have changed since links were made from them.
select coalesce(p.asset, s.asset), coalesce(p.list, s.list), coalesce(p.month, s.month),
       coalesce(p.digest, '')
  from (select asset, list, month, digest
          from partitions
         where asset in ('commits', 'patches', 'messages') and month is not null) p
  full join commit_link_sources s using (asset, list, month)
 where p.digest is distinct from s.digest
 order by 1, 2, 3

-- name: has_changes
select exists (
    select
      from partitions p
      left join commit_link_sources s using (asset, list, month)
     where p.asset in ('commits', 'patches', 'messages') and p.month is not null
       and p.digest is distinct from s.digest)
    or exists (select from commit_link_changes)

-- name: record_months
insert into commit_link_sources (asset, list, month, digest)
select *
  from unnest(%(assets)s::text[], %(of_lists)s::text[], %(of_months)s::text[],
              %(of_digests)s::text[]) as n (asset, list, month, digest)
 where digest <> ''
on conflict (asset, list, month) do update set digest = excluded.digest

-- name: forget_months
delete from commit_link_sources s
 using unnest(%(assets)s::text[], %(of_lists)s::text[], %(of_months)s::text[],
              %(of_digests)s::text[]) as n (asset, list, month, digest)
 where n.digest = '' and (s.asset, s.list, s.month) = (n.asset, n.list, n.month)

-- name: forget_sources
delete from commit_link_sources

-- name: stage
create temporary table touched_commits (
    repository text, sha text, primary key (repository, sha)) on commit drop

-- name: commits_of_month
-- Commits of a month. If exactly one other commit has the title of one of them, it too: a title that
-- several commits have is weaker evidence. With two or more others the title was shared before.
-- offset 0: titles are looked up one by one. Before the first ANALYZE the planner would read all
-- commits of the repository for each.
insert into touched_commits
select repository, sha from commits where list = %(list)s and month = %(month)s
 union
select o.repository, o.sha
  from (select distinct repository, title_key
          from commits
         where list = %(list)s and month = %(month)s) t
 cross join lateral (
       select t.repository, min(sha) as sha
         from (select sha
                 from (select repository, sha, list, month
                         from commits
                        where title_key = t.title_key
                       offset 0) named
                where repository = t.repository and (list, month) <> (%(list)s, %(month)s)
                limit 2) few
       having count(*) = 1) o
on conflict do nothing

-- name: commits_of_patches
-- Commits that a patch of the month may concern: commits with its patch-id, title or date; commits
-- linked to a message of the month; commits that name a message of a patch's thread; and, if they are
-- not linked by patch-id, commits by an author of the patches that change a file of such a name, and
-- commits with the first line of a patch. For `(select ...)` around the list see messages.sql.
insert into touched_commits
select c.repository, c.sha
  from commits c
 where c.patch_id = any(array(select patch_id from patches
                               where list = (select %(list)s) and month = %(month)s
                                 and patch_id <> ''))
   and c.patch_id <> ''
 union
select c.repository, c.sha
  from commits c
 where c.title_key = any(array(select title_key from patches
                                where list = (select %(list)s) and month = %(month)s
                                  and title_key <> ''))
 union
select c.repository, c.sha
  from commits c
 where c.authored_at = any(array(select sent_at from patches
                                  where list = (select %(list)s) and month = %(month)s))
 union
select l.repository, l.sha
  from commit_links l
 where l.message_id = any(array(select message_id from messages
                                 where list = (select %(list)s) and month = %(month)s))
 union
select c.repository, c.sha
  from commits c
 where c.named_mails && array(select o.message_id
                                from (select distinct t.thread_id
                                        from patches p
                                        join threads t using (message_id)
                                       where p.list = (select %(list)s) and p.month = %(month)s) w
                               cross join lateral (
                                      select message_id
                                        from threads
                                       where thread_id = w.thread_id
                                      offset 0) o)
 union
select c.repository, c.sha
  from (select lower(author_email) as email, min(sent_at) as first, max(sent_at) as last,
               array_agg(distinct split_part(f ->> 'path', '/', -1)) as names
          from patches
         cross join jsonb_array_elements(files) as f
         where list = (select %(list)s) and month = %(month)s
         group by 1) a
 cross join lateral (
       select repository, sha, files
         from commits
        where lower(author_email) = a.email
          and authored_at between a.first - %(longest)s::interval
                              and a.last + %(longest)s::interval
          and committed_at between a.first - interval '1 day' and a.last + %(longest)s::interval
       offset 0) c
 where exists (select from jsonb_array_elements(c.files) as f
                where split_part(f ->> 'path', '/', -1) = any(a.names))
   and not exists (
       select from commit_links l
        where (l.repository, l.sha) = (c.repository, c.sha) and l.evidence && '{patch-id}'
       offset 0)
 union
select c.repository, c.sha
  from (select line_digests[1] as line, sent_at
          from patches
         where list = (select %(list)s) and month = %(month)s) p
 cross join lateral (
       select repository, sha
         from commits
        where line_digests[1] = p.line
          and committed_at between p.sent_at and p.sent_at + %(others_way)s::interval
          and lower(author_email) = lower(committer_email)
       offset 0) c
 where not exists (
       select from commit_links l
        where (l.repository, l.sha) = (c.repository, c.sha) and l.evidence && '{patch-id}'
       offset 0)
on conflict do nothing

-- name: commits_of_messages
-- Commits that name a message of the month.
insert into touched_commits
select c.repository, c.sha
  from commits c
 where c.named_mails && array(select message_id from messages
                               where list = (select %(list)s) and month = %(month)s)
on conflict do nothing

-- name: note_touched
-- Ordered by month, so that a batch has whole months of commits.
insert into commit_link_changes (repository, sha)
select repository, sha
  from touched_commits
  join commits using (repository, sha)
 order by repository, list, month, sha

-- name: noted
select number, repository, sha from commit_link_changes order by number limit %(most)s

-- name: forget_noted
delete from commit_link_changes where number = any(%(numbers)s)

-- name: facts
select c.repository, c.sha, c.title_key, c.author_name, c.author_email, c.authored_at,
       c.committed_at, c.patch_id,
       array(select f ->> 'path' from jsonb_array_elements(c.files) as f),
       c.line_digests, c.body,
       (select count(*)
          from (select
                  from (select repository from commits where title_key = c.title_key offset 0) o
                 where o.repository = c.repository
                 limit 2) few) = 1,
       lower(c.author_email) = lower(c.committer_email)
  from commits c
 where (c.repository, c.sha) in (select * from unnest(%(repositories)s::text[], %(shas)s::text[]))

-- name: archived
-- Messages with their thread and first arrival. `is_contested`: several texts claim the id. Only the
-- text that arrived first counts.
select m.message_id, coalesce(t.thread_id, ''),
       case m.arrival_source when 'loaded' then null else m.arrived_at end,
       exists (select from contested_texts c where c.message_id = m.message_id) as is_contested
  from unnest(%(ids)s::text[]) as w (id)
 cross join lateral first_copy(w.id) m
  left join threads t on t.message_id = m.message_id

-- name: candidates
-- Patches that may be the source of commits. `text`, here and below: the number of the text, if
-- several texts claim the id. The lists are in a subselect: if a list is newer than the last ANALYZE,
-- the planner expects one row and would read the whole list.
with found as (
    select p.list, p.month, p.message_id, p.variant, p.place
      from patches p
     where p.patch_id = any(%(patch_ids)s) and p.patch_id <> ''
       and p.list = any(array(select unnest(%(lists)s::text[])))
     union
    select p.list, p.month, p.message_id, p.variant, p.place
      from patches p
     where p.title_key = any(%(titles)s) and p.list = any(array(select unnest(%(lists)s::text[])))
     union
    select p.list, p.month, p.message_id, p.variant, p.place
      from patches p
     where p.list = any(array(select unnest(%(lists)s::text[])))
       and p.sent_at = any(%(dates)s::timestamptz[])
     union
    select p.list, p.month, p.message_id, p.variant, p.place
      from patches p
     where p.message_id = any(%(ids)s)
     union
    select p.list, p.month, p.message_id, p.variant, p.place
      from threads t
      join patches p using (message_id)
     where t.thread_id = any(%(threads)s))
select p.message_id, p.place, p.title_key, p.author_name, p.author_email, p.sent_at,
       case m.arrival_source when 'loaded' then null else m.arrived_at end, p.patch_id,
       array(select f ->> 'path' from jsonb_array_elements(p.files) as f),
       p.line_digests, p.version, p.part, p.parts, p.source, p.flags, p.tags, t.thread_id,
       p.named_commits, o.place as text,
       lower(m.from_email) = lower(p.author_email)
       or (p.author_name <> '' and starts_with(m.from_name, p.author_name))
  from found
 cross join lateral (
       select *
         from patches o
        where (o.list, o.month, o.message_id, o.variant, o.place)
              = (found.list, found.month, found.message_id, found.variant, found.place)
       offset 0) p
 cross join lateral (
       select arrival_source, arrived_at, from_email, from_name
         from messages o
        where (o.list, o.month, o.message_id, o.variant)
              = (p.list, p.month, p.message_id, p.variant)
       offset 0) m
  left join contested_texts o
    on (o.message_id, o.list, o.month, o.variant) = (p.message_id, p.list, p.month, p.variant)
  left join threads t on t.message_id = p.message_id
 where p.kind = 'patch'
 order by p.message_id, p.place, o.place, m.arrived_at

-- name: of_files
-- Per commit, by its number: patches that change a file of this name: the newest of its author, and
-- those of others with the same first line. Digests are ascending, so that patches with most lines of
-- a commit probably have its first one. The folder may differ, because a diff may have been made in a
-- subfolder, or of a larger tree.
select w.number, p.message_id, p.place, p.title_key, p.author_name, p.author_email, p.sent_at,
       case m.arrival_source when 'loaded' then null else m.arrived_at end, p.patch_id,
       array(select f ->> 'path' from jsonb_array_elements(p.files) as f),
       p.line_digests, p.version, p.part, p.parts, p.source, p.flags, p.tags, t.thread_id,
       p.named_commits, o.place as text,
       lower(m.from_email) = lower(p.author_email)
       or (p.author_name <> '' and starts_with(m.from_name, p.author_name))
  from unnest(%(emails)s::text[], %(oldest_dates)s::timestamptz[], %(newest_dates)s::timestamptz[],
              %(names)s::jsonb[], %(lines)s::integer[])
       with ordinality as w (email, first, last, names, line, number)
 cross join lateral (
       select *
         from patches o
        where ((lower(o.author_email) = lower(w.email) and o.sent_at between w.first and w.last)
               or (o.line_digests[1] = w.line
                   and o.sent_at between w.last - %(others_way)s::interval and w.last))
          and o.kind = 'patch' and o.list = any(array(select unnest(%(lists)s::text[])))
          and exists (select from jsonb_array_elements(o.files) as f
                       where w.names ? split_part(f ->> 'path', '/', -1))
          and not exists (
              select from contested_texts c
               where (c.message_id, c.list, c.month, c.variant)
                     = (o.message_id, o.list, o.month, o.variant) and c.place > 1)
        order by lower(o.author_email) = lower(w.email) desc, o.sent_at desc, o.message_id, o.place
        limit 200) p
 cross join lateral (
       select arrival_source, arrived_at, from_email, from_name
         from messages o
        where (o.list, o.month, o.message_id, o.variant)
              = (p.list, p.month, p.message_id, p.variant)
       offset 0) m
  left join contested_texts o
    on (o.message_id, o.list, o.month, o.variant) = (p.message_id, p.list, p.month, p.variant)
  left join threads t on t.message_id = p.message_id
 order by w.number, p.sent_at desc, p.message_id, p.place

-- name: links
select repository, sha, message_id, kind, evidence
  from commit_links
 where (repository, sha) in (select * from unnest(%(repositories)s::text[], %(shas)s::text[]))
 order by repository, sha, place

-- name: delete
delete from commit_links
 where (repository, sha) in (select * from unnest(%(repositories)s::text[], %(shas)s::text[]))

-- name: copy
copy commit_links (repository, sha, message_id, kind, place, evidence) from stdin

-- name: delete_orphans
-- Whole corpus: the repositories of lists.toml have changed, or all links are made again.
delete from commit_links l
 where l.repository <> all(%(repositories)s)
    or not exists (select from commits c where (c.repository, c.sha) = (l.repository, l.sha))

-- name: linked_months
-- Months of commits that have links.
select list, month from commit_link_sources where asset = 'commits'

-- name: months_of_commits
select distinct list, month
  from commits
 where (repository, sha) in (select * from unnest(%(repositories)s::text[], %(shas)s::text[]))

-- name: settle_months
-- Counts and digests of some months of commits. A commit counts once: by the best evidence for the
-- applied mail, or as by_name if it only names archived mail. A month without commits gets no row,
-- but keeps one that it had.
insert into commit_link_months (list, month, counts, digest)
select w.list, w.month, f.counts, f.digest
  from (select distinct list, month
          from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)) w
 cross join lateral (
       select jsonb_build_object(
                  'commits', count(*),
                  'links', coalesce(sum(l.links), 0),
                  'linked', count(*) filter (where l.found),
                  'applied', count(*) filter (where l.applied),
                  'named_elsewhere', count(*) filter (where l.missing and not l.found),
                  'by_trailer', count(*) filter (where l.how = 'trailer'),
                  'by_patch_id', count(*) filter (where l.how = 'patch-id'),
                  'by_subject', count(*) filter (where l.how = 'subject'),
                  'by_lines', count(*) filter (where l.how = 'lines'),
                  'by_name', count(*) filter (where l.found and l.how is null)) as counts,
              encode(sha256(coalesce(string_agg(
                  l.rows, ''::bytea order by c.repository collate "C", c.sha), '')), 'hex')
                  as digest
         from commits c
        cross join lateral (
              select count(*) as links,
                     coalesce(bool_or(kind in ('applied', 'discussion', 'report')), false) as found,
                     coalesce(bool_or(kind = 'applied'), false) as applied,
                     coalesce(bool_or(kind = 'missing'), false) as missing,
                     (array_agg(
                          case when evidence && '{trailer,thread of the trailer}' then 'trailer'
                               when evidence && '{patch-id}' then 'patch-id'
                               when evidence && '{subject}' then 'subject'
                               else 'lines' end
                          order by place) filter (where kind = 'applied'))[1] as how,
                     string_agg(int8send(hash_record_extended(o, 0)), ''::bytea order by place)
                         as rows
                from commit_links o
               where (o.repository, o.sha) = (c.repository, c.sha)) l
        where c.list = w.list and c.month = w.month) f
 where f.counts ->> 'commits' <> '0'
    or exists (select from commit_link_months o where (o.list, o.month) = (w.list, w.month))
on conflict (list, month) do update
   set counts = excluded.counts, digest = excluded.digest
 where (commit_link_months.counts, commit_link_months.digest)
       is distinct from (excluded.counts, excluded.digest)
returning list, month, counts

-- name: forget_empty_months
delete from commit_link_months l
 using unnest(%(assets)s::text[], %(of_lists)s::text[], %(of_months)s::text[])
       as n (asset, list, month)
 where n.asset = 'commits' and (l.list, l.month) = (n.list, n.month)
   and (select c.sha from commits c where (c.list, c.month) = (l.list, l.month) limit 1) is null

-- name: all_months
-- One row per month.
select list, month, counts, digest from commit_link_months order by list, month
