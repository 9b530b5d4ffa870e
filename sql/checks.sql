-- Counts for the checks of months. Used by tables/checks.py.
--
-- A statement returns one row per requested month: list, month, and the counts in the order of the
-- class with its name in tables/checks.py (`undated`: Undated; `patch_counts`: PatchCounts). It uses
-- the indexes on (list, month).

-- name: message_counts
select w.list, w.month,
       coalesce(a.found, 0) as found,
       coalesce((p.counts->>'unpacked_bytes')::bigint, 0) as unpacked_bytes,
       a.object_key is not null
       and not exists (select from cut_messages c where c.list = w.list and c.month = w.month)
           as archived,
       (select count(*) from messages m where m.list = w.list and m.month = w.month) as stored,
       coalesce((p.counts->>'duplicates')::int, 0) as duplicates,
       (select count(*) from quarantine q where q.list = w.list and q.month = w.month)
           as quarantined,
       (select count(*) from removed_messages r where r.list = w.list and r.month = w.month)
           as removed,
       coalesce((p.counts->>'suspicious')::int, 0) as suspicious
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
  left join mbox_archives a on a.list = w.list and a.month = w.month
  left join partitions p on p.asset = 'messages' and p.list = w.list and p.month = w.month

-- name: dialects
select w.list, w.month, coalesce(a.dialect, '') as dialect,
       coalesce(a.found_dialect, '') as better
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
  left join mbox_archives a on a.list = w.list and a.month = w.month

-- name: undated
select w.list, w.month, m.undated, m.messages
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
 cross join lateral (
       select count(*) filter (where date_source <> 'date') as undated, count(*) as messages
         from messages
        where list = w.list and month = w.month) m

-- name: unthreaded
-- Answers that name no parent and joined no thread, and messages that are in no thread.
select w.list, w.month, m.replies_without_reference, m.not_in_threads, m.messages
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
 cross join lateral (
       select count(*) filter (
                  where refs = '{}' and in_reply_to = '{}' and is_answer
                    and t.parent_id is null)
                  as replies_without_reference,
              count(*) filter (where t.message_id is null) as not_in_threads,
              count(*) as messages
         from messages
         left join threads t using (message_id)
        where list = w.list and month = w.month) m

-- name: wrong_spans
-- Chunks whose text differs from the text at their spans. Bodies are looked up chunk by chunk: see
-- `for_vectors` in chunks.sql. A span beyond the end of the body yields a shorter text, so the length
-- of the body is not needed.
select w.list, w.month, c.wrong
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
 cross join lateral (
       select count(*) as wrong
         from chunks c
         left join lateral (
              select body_text
                from messages
               where (list, month, message_id, variant)
                     = (c.list, c.month, c.message_id, c.variant)
               limit 1) m on true
        where c.list = w.list and c.month = w.month
          and (m.body_text is null
               or mod(cardinality(c.spans), 2) = 1
               or (select c.text is distinct from coalesce(
                             string_agg(substr(m.body_text, s.start + 1, s.characters), ''
                                        order by i), '')
                          or length(c.text) is distinct from coalesce(sum(s.characters), 0)
                          or coalesce(bool_or(s.start < 0 or s.characters < 1), false)
                     from generate_series(1, cardinality(c.spans), 2) i
                    cross join lateral (
                          select c.spans[i], greatest(c.spans[i + 1] - c.spans[i], 0))
                          as s (start, characters)))) c

-- name: tokens
select w.list, w.month, c.least, c.mean, c.most, c.chunks
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
 cross join lateral (
       select coalesce(min(tokens), 0) as least, coalesce(avg(tokens), 0)::float8 as mean,
              coalesce(max(tokens), 0) as most, count(*) as chunks
         from chunks
        where list = w.list and month = w.month) c

-- name: patch_counts
-- Patches, malformed patches, and the messages that have a diff or an attached patch.
select w.list, w.month, r.rows, r.malformed, m.messages, m.without_row,
       coalesce((p.counts->>'without_patch')::int, 0) as without_patch
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
  left join partitions p on (p.asset, p.list, p.month) = ('patches', w.list, w.month)
 cross join lateral (
       select count(*) as rows, count(*) filter (where malformed <> '') as malformed
         from patches
        where list = w.list and month = w.month) r
 cross join lateral (
       select count(*) as messages,
              count(*) filter (where not exists (
                  select from patches o
                   where (o.list, o.month, o.message_id, o.variant)
                         = (m.list, m.month, m.message_id, m.variant))) as without_row
         from messages m
        where m.list = w.list and m.month = w.month
          and (m.segments @> '[["patch"]]' or m.attachments @> '[{"is_patch": true}]')) m

-- name: commit_counts
-- Commits now, and their number when they were read.
select w.list, w.month,
       (select count(*) from commits c where c.list = w.list and c.month = w.month) as rows,
       coalesce((p.counts->>'commits')::int, 0) as recorded
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
  left join partitions p on (p.asset, p.list, p.month) = ('commits', w.list, w.month)

-- name: series_counts
-- Patches in no series, although they belong to the copy that counts and are not waiting to be
-- grouped.
select w.list, w.month, p.patches, p.without_series
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
 cross join lateral (
       select count(*) as patches,
              count(*) filter (
                  where s.message_id is null
                    and not exists (select from patch_changes n where n.message_id = p.message_id)
                    and (select (c.list, c.month, c.variant) = (p.list, p.month, p.variant)
                           from first_copy(p.message_id) c)) as without_series
         from patches p
         left join patch_series s using (message_id, place)
        where p.list = w.list and p.month = w.month) p

-- name: link_counts
-- Links of commits, their number when they were made, and the links to mail that does not exist.
select w.list, w.month, l.links, coalesce((m.counts->>'links')::int, 0) as recorded,
       l.without_message,
       exists (select from commit_link_changes)
       or s.digest is distinct from p.digest as waiting
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
  left join commit_link_months m using (list, month)
  left join partitions p on (p.asset, p.list, p.month) = ('commits', w.list, w.month)
  left join commit_link_sources s on (s.asset, s.list, s.month) = ('commits', w.list, w.month)
 cross join lateral (
       select count(*) as links,
              count(*) filter (
                  where o.kind <> 'missing'
                    and not exists (select from messages a where a.message_id = o.message_id))
                  as without_message
         from commits c
         join commit_links o using (repository, sha)
        where c.list = w.list and c.month = w.month) l

-- name: chunk_keys
select key from chunks where list = %(list)s and month = %(month)s

-- name: summary_sentences
-- Summary sentences and statements that are not at their recorded position. Positions count the
-- characters of the copy that arrived first.
select w.list, w.month, s.sentences, s.wrong
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
 cross join lateral (
       select count(*) as sentences,
              count(*) filter (
                  where m.body_text is null or e.start < 0 or e.start >= e."end"
                     or e."end" > length(m.body_text)
                     or ((s.verbatim or e.part in ('decision', 'alternative'))
                         and substr(m.body_text, e.start + 1, e."end" - e.start) <> e.text)
                     or exists (
                        select from unnest(e.also) as a (message_id)
                         where not exists (
                               select from threads t
                                where (t.message_id, t.thread_id) = (a.message_id, s.thread_id))))
                  as wrong
         from (select distinct t.thread_id
                 from messages m
                 join threads t using (message_id)
                where m.list = w.list and m.month = w.month) o
         join thread_summaries s using (thread_id)
        cross join lateral jsonb_to_recordset(s.sentences || s.statements)
              as e (message_id text, start integer, "end" integer, text text, part text,
                    also text[])
         left join lateral (
              select c.body_text
                from threads t
               cross join lateral first_copy(t.message_id) c
               where (t.message_id, t.thread_id) = (e.message_id, s.thread_id)) m on true
        where not exists (select from summary_changes n where n.thread_id = s.thread_id)) s

-- name: summary_ages
-- Threads whose summary is outdated, missing, or waiting to be made. offset 0: threads are looked up
-- one by one.
select w.list, w.month, s.outdated, s.missing, s.waiting, s.threads
  from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)
 cross join lateral (
       select count(*) filter (where not n.waits and s.content_hash <> c.content_hash) as outdated,
              count(*) filter (where not n.waits and s.thread_id is null) as missing,
              count(*) filter (where n.waits) as waiting, count(*) as threads
         from (select distinct t.thread_id
                 from messages m
                 join threads t using (message_id)
                where m.list = w.list and m.month = w.month) o
        cross join lateral (
              select content_hash from thread_contents where thread_id = o.thread_id offset 0) c
        cross join lateral (
              select exists (select from summary_changes where thread_id = o.thread_id) as waits) n
         left join thread_summaries s using (thread_id)) s
