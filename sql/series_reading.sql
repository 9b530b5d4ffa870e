-- Series of patches for readers: only mail that the session may show. A patch has a state only if the
-- mail that gives the reason is shown. Used by reading/series.py.

-- name: series
-- Patches of the series that contain some mails, each with its message, its reason, and the commits
-- that it became. For open patches also: whether somebody else has answered the patch or its cover
-- letter, and the newest mail of its list. A version that is not shown does not supersede others; the
-- next shown version does. Unless `whole`, only changes with a version in these mails, with their
-- cover letters. `series_id`: first shown mail of the whole series.
with asked as materialized (
    select w.series_id,
           case when exists (select from first_shown(w.series_id)) then w.series_id
                else (select f.message_id
                        from patch_series f
                       cross join lateral first_shown(f.message_id) m
                       where f.series_id = w.series_id
                       order by f.posting, m.sent_at, f.message_id, f.place
                       limit 1)
           end as first_shown
      from (select distinct series_id from patch_series where message_id = any(%(ids)s)) w),
versions as materialized (
    select s.*, s.state = 'open' or r.message_id is null as is_open, r.message_id as shown_reason,
           case when s.reason_end is not null
                then substr(r.body_text, s.reason_start + 1, s.reason_end - s.reason_start)
           end as said,
           r.from_name as said_by, r.from_email as said_from, r.sent_at as said_at
      from patch_series s
      left join lateral (
           select * from first_shown(s.reason_id)
            union all
           (with recursive newer (id) as (
                select s.reason_id where s.state = 'superseded' and s.reason_end is null
                 union
                select n.reason_id
                  from newer x
                  join patch_series n
                    on n.message_id = x.id and (n.series_id, n.change) = (s.series_id, s.change)
                 where n.state = 'superseded' and n.reason_end is null)
            select m.* from newer x cross join lateral first_shown(x.id) m)
            limit 1) r on true
     where s.series_id = any(array(select series_id from asked))
       and (%(whole)s
            or (s.series_id, s.change) in (
               select w.series_id, w.change
                 from patch_series w
                where w.message_id = any(%(ids)s)
               union
               select o.series_id, o.change
                 from patch_series w
                 join patches c
                   on (c.list, c.month, c.message_id, c.variant, c.place)
                      = (w.list, w.month, w.message_id, w.variant, w.place) and c.kind = 'cover'
                 join patch_series o on (o.series_id, o.posting) = (w.series_id, w.posting)
                where w.message_id = any(%(ids)s)))),
covers as materialized (  -- of postings with an open version: senders of answers to the cover letter
    select w.series_id, w.posting,
           array(select distinct lower(a.from_email)
                   from messages a
                  where (a.refs || a.in_reply_to) && w.covers
                    and not (a.refs || a.in_reply_to) && w.parts
                    and a.list || '' = any((select shown_lists())::text[])) as answered_by
      from (select w.series_id, w.posting,
                   array_agg(w.message_id) filter (where k.kind = 'cover') as covers,
                   array_agg(w.message_id) filter (where k.kind <> 'cover') as parts
              from patch_series w
              join patches k
                on (k.list, k.month, k.message_id, k.variant, k.place)
                   = (w.list, w.month, w.message_id, w.variant, w.place)
             where w.series_id = any(array(select series_id from versions where is_open))
               and (w.series_id, w.posting) in (
                   select series_id, posting from versions where is_open)
             group by w.series_id, w.posting
            having count(*) filter (where k.kind = 'cover') > 0 and count(*) > 1) w)
select asked.first_shown as series_id, s.change, s.posting, s.message_id, s.place, p.kind, p.title, p.version, p.part,
       p.parts, m.list, m.sent_at, m.from_name, m.from_email, s.previous_id, s.evidence,
       s.is_taken_over, s.by_stranger, s.is_newest, s.is_remark,
       exists (select from shown_texts c where c.message_id = s.message_id) as is_contested,
       case when s.is_open then 'open' else s.state end as state,
       s.shown_reason as reason_id, s.said, s.said_by, s.said_from, s.said_at,
       case when s.state in ('applied', 'rejected') and s.shown_reason is not null
            then has_standing(s.said_from) end as has_standing,
       case when s.shown_reason is null then '{}' else s.shas end as shas,
       case when s.is_open
            then coalesce(lower(m.from_email) <> any(covers.answered_by), false)
                 or (select count(*) > 0  -- with exists, the planner picks a scan that may end early
                       from messages a
                      where (a.refs || a.in_reply_to) && array[s.message_id]
                        and lower(a.from_email) <> lower(m.from_email)
                        -- || '' keeps the planner from an index of lists: it would read all messages
                        and a.list || '' = any((select shown_lists())::text[]))
            else false end as is_answered,
       case when s.is_open
            then (select max(n.sent_at)
                    from messages n
                   where n.list = m.list and n.sent_at <= %(now)s::timestamptz)
            end as known_until,
       coalesce(c.shas, '{}') as commits, c.committer_name, c.committed_at
  from versions s
  join asked using (series_id)
 cross join lateral first_shown(s.message_id) m
  join patches p
    on (p.list, p.month, p.message_id, p.variant, p.place)
       = (m.list, m.month, m.message_id, m.variant, s.place)
  left join covers on (covers.series_id, covers.posting) = (s.series_id, s.posting)
 cross join lateral (
       select array_agg(o.sha order by o.committed_at, o.sha) as shas,
              (array_agg(o.committer_name order by o.committed_at, o.sha))[1] as committer_name,
              min(o.committed_at) as committed_at
         from commit_links k
         join commits o using (repository, sha)
        where k.message_id = s.message_id and k.kind = 'applied' and p.kind = 'patch'
          and o.list = any((select shown_lists())::text[])
          and (o.patch_id = p.patch_id or o.title_key = p.title_key
               -- if a mail has several patches, only those with most of their lines in the commit
               or 2 * (select count(*)
                         from unnest(p.line_digests) x (digest)
                        where x.digest = any(o.line_digests)) > cardinality(p.line_digests)
               or not exists (select from patches q
                               where (q.list, q.month, q.message_id, q.variant)
                                     = (p.list, p.month, p.message_id, p.variant)
                                 and q.place <> p.place))) c
 order by s.posting, m.sent_at, s.message_id, s.place

-- name: commits_said
-- Commits that mails name in their statements.
select o.message_id, o.shas
  from patch_outcomes o
 where o.message_id = any(%(ids)s) and o.shas <> '{}'
   and exists (select from shown_messages m where m.message_id = o.message_id)
 order by o.message_id, o.number

-- name: open
-- Mails of the open patches of a shown list.
select distinct s.message_id
  from patch_series s
  join shown_messages m
    on (m.list, m.month, m.message_id, m.variant) = (s.list, s.month, s.message_id, s.variant)
 where s.list = %(list)s and s.state = 'open' and not s.is_remark
