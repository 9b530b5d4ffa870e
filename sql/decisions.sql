-- Mail that decided a commit. Used by reading/decisions.py.

-- name: mails
-- Messages, each as the copy that arrived first, with all lists that have it. If that text may not be
-- shown, another one under its id does not take its place.
select w.id, shown_thread_id(n.thread_id), m.subject, m.from_name, m.from_email, m.sent_at,
       array(select distinct o.list
               from shown_messages o
               left join shown_texts t using (message_id, list, month, variant)
              where o.message_id = w.id and coalesce(t.place, 1) = 1
              order by 1)
  from unnest(%(ids)s::text[]) as w (id)
 cross join lateral first_shown(w.id) m
  left join lateral shown_node(w.id) n on true
 where not exists (
       select from contested_texts c
        where (c.message_id, c.list, c.month, c.variant)
              = (m.message_id, m.list, m.month, m.variant) and c.place > 1)

-- name: naming
-- Messages of some lists whose new text names the commit, by its full or shortened id, or whose subject
-- has its number in Subversion, oldest first, and their count. In a text that number is mostly the
-- version that somebody runs. Dates, here and below, are compared in a form that no index supports: the
-- planner would choose an index of dates and read from there on.
select m.message_id, count(*) over ()
  from shown_messages m
 where m.search @@ %(query)s::tsquery and m.list = any(%(lists)s)
   and (m.search @@ %(ids)s::tsquery or (%(revision)s <> '' and m.subject ~* %(revision)s))
   and m.message_id <> all(%(shown)s)
   and m.sent_at + interval '1 day' > %(since)s
   and not exists (select from shown_texts c where c.message_id = m.message_id)
 group by m.message_id
 order by min(m.sent_at), m.message_id
 limit 20

-- name: titled
-- Patches and answers to patches that have all words of a title, sent around the time of the commit,
-- each with whether it is an answer, whether it has a diff, and whether other texts claim its id.
select distinct on (m.sent_at, m.message_id) m.message_id, m.subject, p.message_id is null,
       coalesce(p.has_diff, false),
       exists (select from shown_texts c where c.message_id = m.message_id)
  from shown_messages m
  left join lateral (
       select o.message_id, bool_or(o.files <> '[]') as has_diff
         from patches o
        where (o.list, o.month, o.message_id, o.variant)
              = (m.list, m.month, m.message_id, m.variant)
        group by 1) p on not m.is_answer
 where m.search @@ %(query)s::tsquery and m.list = any(%(lists)s)
   and (p.message_id is not null or (m.is_answer and m.subject ~* '\mpatch'))
   and m.sent_at between %(since)s::timestamptz - interval '400 days'
                     and %(since)s::timestamptz + interval '14 days'
 order by m.sent_at, m.message_id
 limit 500

-- name: oldest
-- First month of each list that has mail.
select list, min(month)
  from partitions
 where asset = 'messages' and list = any(%(lists)s) and list = any((select shown_lists())::text[])
   and (counts ->> 'stored')::integer > 0
 group by list

-- name: repositories
-- Repositories with commits and the list that each belongs to, for lists that may be shown.
with recursive found as (
    (select repository, list from commits order by repository limit 1)
     union all
    select n.repository, n.list
      from found f
     cross join lateral (
           select c.repository, c.list
             from commits c
            where c.repository > f.repository
            order by c.repository
            limit 1) n)
select repository, list from found where list = any((select shown_lists())::text[])

-- name: thanks
-- Statements that a commit was applied, oldest first: those that give its id, and those that decided
-- the state of the patches that it was applied from. A number of Subversion counts in later mail of
-- the commit's lists: other repositories have the same numbers. Each with its patches and the number
-- of statements. Contested messages are left out.
with said as (
    select o.message_id, o.start_at, o.end_at, true as by_id
      from patch_outcomes o
     where o.shas && %(forms)s::text[] and o.outcome in ('applied', 'pulled')
     union all
    select o.message_id, o.start_at, o.end_at, true
      from patch_outcomes o
     where o.shas && %(revisions)s::text[] and o.outcome in ('applied', 'pulled')
       and o.sent_at between %(since)s::timestamptz - interval '1 day'
                         and %(since)s::timestamptz + interval '400 days'
       and exists (select
                     from shown_messages m
                    where m.message_id = o.message_id and m.list = any(%(lists)s))
     union all
    select s.reason_id, s.reason_start, s.reason_end, false
      from patch_series s
     where s.message_id = any(%(applied)s) and s.state = 'applied' and s.reason_end is not null)
select s.message_id,
       substr(m.body_text, s.start_at + 1, least(s.end_at - s.start_at, 2000)) as said, s.by_id,
       array(select p.message_id
               from patch_series p
              cross join lateral first_shown(p.message_id)
              where p.reason_id = s.message_id
                and (p.shas && (%(forms)s::text[] || %(revisions)s::text[])
                     or p.message_id = any(%(applied)s))
              order by p.message_id
              limit 20),
       has_standing(m.from_email), count(*) over ()
  from (select distinct on (message_id) *
          from said
         order by message_id, by_id desc, start_at) s
 cross join lateral first_shown(s.message_id) m
 where not exists (select from shown_texts c where c.message_id = s.message_id)
 order by m.sent_at, s.message_id
 limit 20

-- name: releases
-- Messages that have all words of a title and a subject that may announce a release.
select distinct on (m.sent_at, m.message_id) m.message_id, m.subject, m.body_text,
       has_standing(m.from_email)
  from shown_messages m
 where m.search @@ %(query)s::tsquery and m.list = any(%(lists)s) and not m.is_answer
   and m.sent_at + interval '1 day' > %(since)s
   and m.subject ~ '\d' and m.subject !~* '\m(patch|pull)\M'
   and not exists (select from shown_texts c where c.message_id = m.message_id)
 order by m.sent_at, m.message_id
 limit 20
