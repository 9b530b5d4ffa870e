-- Commits and patches for pages: only what the session may show. Used by reading/patch_pages.py. A
-- commit is shown if its list is.

-- name: by_prefix
-- The prefix has hexadecimal digits only. Reads one more than is listed, to know whether there are
-- more.
select repository, sha
  from commits
 where sha like %(prefix)s || '%%' and list = any((select shown_lists())::text[])
 order by sha, repository
 limit %(most)s

-- name: is_closed
-- True if a list that was published once has a commit with this prefix.
select exists (
    select from commits c join lists l using (list)
     where c.sha like %(prefix)s || '%%' and l.was_published)

-- name: list_of
select list from commits where (repository, sha) = (%(repository)s, %(sha)s)

-- name: has_commits
-- max reads the newest month from an index; the planner would run exists as a sequential scan.
select max(month) is not null
  from commits
 where list = %(list)s and list = any((select shown_lists())::text[])

-- name: addresses
-- For a month of a list: commits with a certain mail that may be shown, and series that begin in the
-- month, by their first mail.
select 'commit' as page, c.sha as id, c.committed_at
  from commits c
 where c.list = %(list)s and c.month = %(month)s and c.list = any((select shown_lists())::text[])
   and exists (select from commit_links k
                where (k.repository, k.sha) = (c.repository, c.sha)
                  and k.kind in ('applied', 'discussion', 'report')
                  and exists (select from shown_messages m where m.message_id = k.message_id))
union all
select distinct 'series', s.message_id, null::timestamptz
  from patches p
  join patch_series s using (message_id, place)
 where p.list = %(list)s and p.month = %(month)s and p.list = any((select shown_lists())::text[])
   and s.message_id = s.series_id
 order by page, committed_at, id

-- name: applied
-- Newest commits of a list before a position, and whether each has a certain mail that may be shown.
-- `most` limits the commits read.
select c.repository, c.sha, c.committed_at,
       (select count(*) > 0  -- with exists, the planner scans all links
          from commit_links k
         cross join lateral first_shown(k.message_id)
         where (k.repository, k.sha) = (c.repository, c.sha)
           and k.kind in ('applied', 'discussion', 'report'))
  from commits c
 where c.list = %(list)s and c.list = any((select shown_lists())::text[])
   and c.month <= to_char(%(committed_at)s::timestamptz at time zone 'UTC', 'YYYY-MM')
   and (c.committed_at, c.sha) < (%(committed_at)s, %(sha)s)
 order by c.month desc, c.committed_at desc, c.sha desc
 limit %(most)s

-- name: open
-- Newest mails with patches of a list before a position, and whether a patch of each is open. `most`
-- limits the patches read.
select p.message_id, p.sent_at,
       (select count(*) > 0  -- with exists, the planner scans all open patches
          from patch_series s
         where s.message_id = p.message_id and s.state = 'open' and not s.is_remark)
  from (select p.message_id, p.sent_at
          from patches p
         where p.list = %(list)s and p.list = any((select shown_lists())::text[])
           and (p.sent_at, p.message_id) < (%(sent_at)s, %(message_id)s)
         order by p.sent_at desc, p.message_id desc
         limit %(most)s) p
 group by p.message_id, p.sent_at
 order by p.sent_at desc, p.message_id desc

-- name: details
-- Per version of a series: the author's changelog, the size of the diff, and the sentence that
-- decided its state, with context.
select s.message_id, s.place, p.changelog, p.added, p.removed, p.file_count,
       substr(r.body_text, greatest(1, s.reason_start + 1 - %(context)s),
              s.reason_end + %(context)s - greatest(0, s.reason_start - %(context)s)),
       s.reason_start - greatest(0, s.reason_start - %(context)s),
       s.reason_end - greatest(0, s.reason_start - %(context)s)
  from patch_series s
 cross join lateral first_shown(s.message_id) m
  join patches p
    on (p.list, p.month, p.message_id, p.variant, p.place)
       = (m.list, m.month, m.message_id, m.variant, s.place)
  left join lateral first_shown(s.reason_id) r on s.reason_end is not null
 where s.series_id = any(array(select distinct series_id
                                 from patch_series
                                where message_id = %(message_id)s))
