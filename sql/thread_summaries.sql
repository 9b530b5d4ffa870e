-- Summaries of threads: those to make, their input, and writing them. Used by
-- tables/thread_summaries.py.

-- name: change_all
-- Whole corpus: summaries are made for the first time, or by another maker.
with noted as (
    delete from summary_changes)
insert into summary_changes (thread_id)
select distinct thread_id from threads

-- name: are_outdated
-- True if a thread has changed since the last run began. Changes that the run left do not count.
select case when s.updated_at is null then exists (select from threads)
            else exists (select from summary_changes where noted_at > s.updated_at) end
  from (select max(updated_at) as updated_at
          from partitions
         where asset = 'thread_summaries' and list is null) s

-- name: next_changes
-- Changed threads in the order of ids, up to `until` (null: all).
select distinct thread_id
  from summary_changes
 where thread_id > %(after)s and (%(until)s::text is null or thread_id <= %(until)s)
 order by thread_id
 limit %(most)s

-- name: count_changes
-- Up to `until` (null: all).
select count(distinct thread_id)
  from summary_changes
 where %(until)s::text is null or thread_id <= %(until)s

-- name: find_nth_change
-- Last of the first `number` changed threads.
select thread_id
  from (select distinct thread_id from summary_changes order by thread_id limit %(number)s) c
 order by thread_id desc
 limit 1

-- name: take_changes
-- The condition on a range makes the planner use the index. The table has no statistics, and for
-- single ids alone the planner would read the whole table.
delete from summary_changes
 where thread_id = any(%(threads)s)
   and thread_id between (select min(x) from unnest(%(threads)s::text[]) x)
                     and (select max(x) from unnest(%(threads)s::text[]) x)

-- name: note_changes
insert into summary_changes (thread_id) select unnest(%(threads)s::text[])

-- name: contents
select thread_id, messages, characters, content_hash
  from thread_contents
 where thread_id = any(%(threads)s)

-- name: known
select thread_id, maker, content_hash from thread_summaries where thread_id = any(%(threads)s)

-- name: messages
-- Archived messages of threads in order, as in thread_contents: the copy of each that arrived first,
-- without contested ones.
select t.thread_id, m.message_id, coalesce(nullif(m.from_name, ''), m.from_email), m.sent_at,
       t.parent_id, m.subject, m.body_text, m.segments, m.attachments @> '[{"is_patch": true}]',
       t.by_subject, m.from_email
  from threads t
 cross join lateral first_copy(t.message_id) m
 where t.thread_id = any(%(threads)s)
   and not exists (select from contested_texts where message_id = t.message_id)
 order by t.thread_id, t.position

-- name: lock_threads
-- Lock of the step that builds threads: no message leaves a thread until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('threads', 0))

-- name: give_up_early
-- Without it, two runs that write the same threads would wait until the server ends one.
set local lock_timeout = '500ms'

-- name: write
insert into thread_summaries (
       thread_id, maker, verbatim, content_hash, messages, first_sent_at, last_sent_at,
       participants, patches, sentences, statements)
values (%(thread_id)s, %(maker)s, %(verbatim)s, %(content_hash)s, %(messages)s, %(first_sent_at)s,
        %(last_sent_at)s, %(participants)s, %(patches)s, %(sentences)s,
        %(statements)s)
on conflict (thread_id) do update
   set maker = excluded.maker, verbatim = excluded.verbatim, content_hash = excluded.content_hash,
       messages = excluded.messages, first_sent_at = excluded.first_sent_at,
       last_sent_at = excluded.last_sent_at, participants = excluded.participants,
       patches = excluded.patches, sentences = excluded.sentences,
       statements = excluded.statements, made_at = now()
 -- when summaries are made again, most are unchanged
 where (thread_summaries.maker, thread_summaries.verbatim, thread_summaries.content_hash,
        thread_summaries.messages, thread_summaries.first_sent_at, thread_summaries.last_sent_at,
        thread_summaries.participants, thread_summaries.patches, thread_summaries.sentences,
        thread_summaries.statements, thread_summaries.checksum)
       is distinct from
       (excluded.maker, excluded.verbatim, excluded.content_hash, excluded.messages,
        excluded.first_sent_at, excluded.last_sent_at, excluded.participants, excluded.patches,
        excluded.sentences, excluded.statements, excluded.checksum)
returning thread_id

-- name: drop_orphans
-- Whole corpus: summaries are made again.
delete from thread_summaries s
 where not exists (select from threads t where t.thread_id = s.thread_id and not t.is_ghost)

-- name: delete
delete from thread_summaries where thread_id = any(%(threads)s)

-- name: uncheck
-- The months of summarized threads are checked again.
delete from month_checks p
 using threads t
  join messages m using (message_id)
 where t.thread_id = any(%(threads)s) and p.asset = 'thread_summaries'
   and (p.list, p.month) = (m.list, m.month)

-- name: count
-- Whole corpus: by the primary key; triggers delete rows without counting them.
select count(*) from thread_summaries

-- name: read
-- A summary, if it may be shown. `around`: up to 400 characters before and after each sentence, so that
-- an address that crosses its border is hidden as a whole. `authors`: of each sentence. For each
-- statement: its author, its time, the standing of the author and the commit that shows it, the
-- text around it, and the author's address. A `committer` has made a commit to a repository of the list before. `asked`: the
-- message that opens the thread is addressed to the author. It does not count if it arrived more than
-- a day after an answer, because anybody can send mail under an id that was answered but never
-- archived. Commits are those that the thread's messages became.
select s.thread_id, s.maker, s.verbatim, s.messages, s.first_sent_at, s.last_sent_at,
       s.participants, s.patches, s.sentences,
       array(
           select jsonb_build_array(
                      coalesce(substr(m.body_text, greatest(e.start - 400, 0) + 1,
                                      least(e.start, 400)), ''),
                      coalesce(substr(m.body_text, e."end" + 1, 400), ''))
             from rows from (
                      jsonb_to_recordset(s.sentences)
                      as (message_id text, start integer, "end" integer))
                  with ordinality as e (message_id, start, "end", place)
             left join lateral first_shown(e.message_id) m on s.verbatim
            order by e.place) as around,
       array(
           select jsonb_build_array(coalesce(m.from_name, ''), coalesce(m.from_email, ''))
             from rows from (jsonb_to_recordset(s.sentences) as (message_id text))
                  with ordinality as e (message_id, place)
             left join lateral first_shown(e.message_id) m on true
            order by e.place) as authors,
       array(
           select jsonb_build_array(
                      stated.every -> (e.place - 1)::int,
                      coalesce(nullif(m.from_name, ''), m.from_email), m.sent_at,
                      case when c.sha is not null then 'committer'
                           when a.is_asked then 'asked' else '' end,
                      coalesce(c.sha, ''),
                      substr(m.body_text, greatest(e.start - 400, 0) + 1, least(e.start, 400)),
                      substr(m.body_text, e."end" + 1, 400), m.from_email)
             from rows from (
                      jsonb_to_recordset(stated.every)
                      as (message_id text, start integer, "end" integer, text text))
                  with ordinality as e (message_id, start, "end", text, place)
            cross join lateral first_shown(e.message_id) m
             left join lateral (
                  select o.sha
                    from commits o
                   where lower(o.committer_email) = lower(m.from_email) and m.from_email <> ''
                     and o.committed_at <= m.sent_at + interval '1 day'
                     and o.list in (select list from shown_messages
                                     where message_id = e.message_id)
                   order by o.committed_at desc, o.sha
                   limit 1) c on true
            cross join lateral (
                  select exists (
                         select from threads t
                          cross join lateral first_shown(t.message_id) r
                          cross join unnest(r.recipients) as p (person)
                          where t.thread_id = s.thread_id and t.position = 0
                            and lower(r.from_email) <> lower(m.from_email)
                            and not exists (
                                select from threads answer
                                 cross join lateral first_shown(answer.message_id) b
                                 where answer.thread_id = s.thread_id and answer.position > 0
                                   and 'loaded' not in (b.arrival_source, r.arrival_source)
                                   and b.arrived_at < r.arrived_at - interval '1 day')
                            and right('<' || lower(p.person), length(m.from_email) + 2)
                                in ('<' || lower(m.from_email) || '>',
                                    left('<' || lower(p.person), 1) || lower(m.from_email)))
                         as is_asked) a
            where substr(m.body_text, e.start + 1, e."end" - e.start) = e.text
            order by e.place) as said,
       array(
           select jsonb_build_array(
                      o.sha, o.repository, o.subject, o.committer_name, o.committed_at,
                      bool_or(l.kind = 'applied'), o.reverts)
             from threads t
             join commit_links l on l.message_id = t.message_id and l.kind <> 'missing'
                                and not l.evidence && '{contested}'
             join commits o using (repository, sha)
            where t.thread_id = s.thread_id and o.list = any((select shown_lists())::text[])
            group by o.repository, o.sha
            order by o.committed_at, o.repository, o.sha
            limit 100) as linked
  from shown_summaries s
 cross join lateral (
       select s.statements || coalesce(jsonb_agg(x - 'also'), '[]') as every
         from jsonb_array_elements(s.sentences) x
        where s.verbatim and x ->> 'part' = 'outcome') stated
 where s.thread_id = any(%(threads)s)
