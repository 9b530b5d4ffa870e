-- Passages that answer a question. Used by answers/.

-- name: chunks
-- Chunks by key, grouped by message so that each body is read once. Keys without a chunk and chunks
-- without text of their own are skipped.
select m.body_text, json_agg(json_build_array(c.key, c.spans, c.tokens))
  from chunks c
  join messages m using (list, month, message_id, variant)
 where c.key = any(%(keys)s) and c.text <> '' and m.list = any((select shown_lists())::text[])
 group by m.list, m.month, m.message_id, m.variant

-- name: outcomes
-- Sentences that state the outcomes of threads, in the order of the threads. Each row has the
-- sentence, up to 400 characters of context on each side, and the offset of the sentence in these.
select e.start,
       substr(m.body_text, greatest(e.start - 400, 0) + 1,
              e."end" - greatest(e.start - 400, 0) + 400),
       least(e.start, 400), substr(m.body_text, e.start + 1, e."end" - e.start),
       m.message_id, s.thread_id,
       array(select distinct c.list from shown_messages c where c.message_id = m.message_id order by 1),
       m.month, m.subject, m.from_name, m.from_email, m.sent_at
  from unnest(%(threads)s::text[]) with ordinality as t (thread_id, place)
  join shown_summaries s using (thread_id)
 cross join lateral rows from (
       jsonb_to_recordset(s.sentences)
       as (message_id text, part text, start integer, "end" integer))
       with ordinality as e (message_id, part, start, "end", place)
 cross join lateral first_shown(e.message_id) m
 where e.part = 'outcome' and e.message_id = any(%(found)s)
 order by t.place, e.place

-- name: bodies
-- Bodies, segments and arrival of messages, by the key of any of their chunks.
select c.key, m.body_text, m.segments, m.arrived_at
  from chunks c
  join shown_messages m using (list, month, message_id, variant)
 where c.key = any(%(keys)s)

-- name: folded
select fold_name(%(name)s)

-- name: people
-- Folded sender names that contain a folded word, each with its number of (list, month) rows. Uses
-- the index senders_person. Names that contain @ are left out.
select n.name, count(*)
  from senders s
 cross join lateral (select left(s.person, -length(s.address) - 1) as name) n
 where s.person like like_pattern(%(word)s)
   and s.list = any((select shown_lists())::text[])
   and (cardinality(%(lists)s::text[]) = 0 or s.list = any(%(lists)s))
   and strpos(n.name, '@') = 0
 group by n.name
