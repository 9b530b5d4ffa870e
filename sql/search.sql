-- Search: what a query and its fields mean, finding messages, reading hits. Used by search/.
--
-- {passes} is replaced by the conditions of a request (sql/filters.sql). Every statement that finds
-- messages has them, because the metadata of a vector can be older than its message.
-- {passes_in_lists}: the conditions other than lists, where lists are compared differently.
-- {passes_unindexed}: the conditions that {source} does not imply. {source}: the table of messages, or
-- the statement `indexed` or `walked`. {by_date}: the order, newest or oldest first.

-- name: whole_subjects
-- Messages whose whole subject is the query, per list: the newest that begin a discussion or are a
-- version of a patch, and the first answers. A topic without a version matches all versions. offset 0:
-- the messages of a topic are read in order until enough pass. Otherwise the planner would read, for
-- each list, all messages that match a filter, and for `exists` alone all applied patches.
select m.message_id, m.list, m.month, m.variant, m.subject, m.sent_at,
       m.is_answer, m.in_reply_to <> '{}' or m.refs <> '{}' as is_reply,
       exists (select from applied_parts a where a.message_id = m.message_id offset 0)
       and not exists (select from shown_texts o where o.message_id = m.message_id offset 0)
           as is_applied
  from unnest(%(subject_lists)s::text[]) as l (name)
 cross join lateral (
       select unnest(%(topics)s::text[])
        union
       select v.topic
         from unnest(%(versioned)s::text[]) as t (topic)
        cross join lateral (
              select topic
                from messages
               where list = l.name and topic <> ''
                 and topic between t.topic || %(first_version)s and t.topic || %(last_version)s) v
       ) as w (topic)
 cross join lateral (
       (select *
          from (select *
                  from messages
                 where list = l.name and topic = w.topic and topic <> '' and not is_answer
                 order by sent_at desc
                offset 0) m
         where {passes_in_lists}
         order by m.sent_at desc
         limit %(most)s)
        union all
       (select *
          from (select *
                  from messages
                 where list = l.name and topic = w.topic and topic <> '' and is_answer
                 order by sent_at
                offset 0) m
         where {passes_in_lists}
         order by m.sent_at
         limit %(most)s)) m
 where not exists (select from shown_texts o where o.message_id = m.message_id offset 0)

-- name: commit_subjects
-- Patches that became the newest commits with one of these titles. A commit and its patch may have
-- different subjects.
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

-- name: changed_names
-- Messages of the newest commits that change a file or function with each of up to three names. The
-- longest name is looked up in an index. || '' keeps the other names out of the index scan: their
-- pattern is %% if there are fewer names, and that matches all.
select m.message_id, m.list, m.month, m.variant
  from (select repository, sha, committed_at
          from commits
         where (changed_names like %(whole)s or changed_names like %(ending)s
                or changed_names like %(function)s)
           and changed_names || '' like any(%(second)s::text[])
           and changed_names || '' like any(%(third)s::text[])
           and list = any((select shown_lists())::text[])
         order by committed_at desc, sha
         limit %(commits)s) c
  join commit_links k using (repository, sha)
 cross join lateral (
       select *
         from messages m
        where m.message_id = k.message_id and {passes}
        order by m.arrived_at, m.list
        limit 1) m
 where k.kind in ('applied', 'discussion', 'report')
   and not exists (select from shown_texts o where o.message_id = m.message_id offset 0)
 order by c.committed_at desc, c.sha, k.place
 limit %(most)s

-- name: confirmed
-- Matches of the indexes that are stored and pass the filters. `place`: from 1 for matches by words,
-- then matches by subject; from -1 downwards for chunks by meaning; 0 for further messages of the best
-- threads, in the order of these, up to a limit each. A match is null if the filters already rejected
-- it. `is_brief`: the new text is short. `is_named`: has one of the names in the query. Last column:
-- lexemes of the best match by words. `text`: number of the text of a contested id; only text 1 is in
-- a thread.
-- offset 0: messages are found by key and then filtered. The planner expects 4 messages for a file or
-- a receiver and would start with all 3,000. Lists are compared before messages are read, because an
-- index scan with an array of lists takes four times as long per row.
with asked as materialized (
    select w.place, w.list, w.month, w.message_id, w.variant::smallint as variant
      from rows from (json_array_elements_text(%(found_lists)s),
                      json_array_elements_text(%(found_months)s),
                      json_array_elements_text(%(found_ids)s),
                      json_array_elements_text(%(found_variants)s))
           with ordinality as w (list, month, message_id, variant, place)
     where w.list = any(%(lists)s)
    union all
    select -k.place, c.list, c.month, c.message_id, c.variant
      from json_array_elements_text(%(found_keys)s) with ordinality as k (key, place)
      join chunks c on c.key = k.key
     where c.list = any(%(lists)s)),
found as materialized (
    select a.place, m.message_id, m.list, m.month, m.variant, o.place as text, t.thread_id,
           t.thread_id is not null and t.parent_id is null as begins,
           m.new_text_length < %(found_brief)s as is_brief, m.is_named
      from asked a
     cross join lateral (
           select m.message_id, m.list, m.month, m.variant, m.new_text_length,
                  %(found_names)s::text = ''
                  or m.search @@ %(found_names)s::text::tsquery as is_named
             from messages m
            where (m.list, m.month, m.message_id, m.variant)
                  = (a.list, a.month, a.message_id, a.variant)
              and {passes_in_lists}
           offset 0) m
      left join shown_texts o
        on (o.message_id, o.list, o.month, o.variant)
           = (m.message_id, m.list, m.month, m.variant)
      left join threads t on t.message_id = m.message_id and coalesce(o.place, 1) = 1),
best_threads as (
    select thread_id, min(abs(place)) as place
      from found
     where thread_id is not null
     group by thread_id
     order by place, thread_id
     limit %(found_threads)s)
select f.place, f.message_id, f.list, f.month, f.variant, f.text, f.thread_id, f.begins, f.is_brief,
       f.is_named,
       case when f.place = (select min(place) from found where place > 0) then
            array(select l.lexeme
                    from unnest(%(found_lexemes)s::text[], %(found_queries)s::tsquery[]) as l (lexeme, query)
                    join messages m on (m.list, m.month, m.message_id, m.variant)
                                     = (f.list, f.month, f.message_id, f.variant)
                                   and m.search @@ l.query) end
  from found f
union all
select 0, w.message_id, w.list, w.month, w.variant, w.text, b.thread_id, false, false, w.is_named,
       null
  from best_threads b
 cross join lateral (
       select m.message_id, m.list, m.month, m.variant, o.place as text, m.is_named
         from threads t
        cross join lateral (
              select m.message_id, m.list, m.month, m.variant,
                     %(found_names)s::text = ''
                     or m.search @@ %(found_names)s::text::tsquery as is_named
                from messages m
               where m.message_id = t.message_id
                 and {passes}
              offset 0) m
         left join shown_texts o
           on (o.message_id, o.list, o.month, o.variant)
              = (m.message_id, m.list, m.month, m.variant)
        where t.thread_id = b.thread_id and coalesce(o.place, 1) = 1
        order by t.position, m.list, m.month, m.variant
        limit %(found_members)s) w

-- name: indexed
-- Messages that an index finds for the filters. offset 0: planned separately. With a limit or an order
-- the planner would read messages by date until enough pass, and perhaps none do.
select * from messages m where {indexed} offset 0

-- name: walked
-- The newest or oldest messages of the requested lists and days, up to a limit.
select * from messages m where {walked} order by {by_date} limit %(walked)s

-- name: horizon
-- Date of the first message beyond this walk; no row if the walk reaches all.
select m.sent_at from messages m where {walked} order by {by_date} limit 1 offset %(walked)s

-- name: first_sent
-- Date of the first message of the requested lists and days.
select m.sent_at from messages m where {walked} order by m.sent_at limit 1

-- name: indexed_count
-- Number of messages that an index finds, up to a limit.
select count(*) from (select from {source} m limit %(most)s) f

-- name: passing
-- Ids of messages that an index finds and that pass the filters, whether the index finds as many as the
-- limit, and their estimated share of all messages. If a sample shows that many messages match, no ids
-- are read: finding 300,000 in a trigram index takes 100 ms. The sample has one message in each of some
-- evenly spread pages; the newest messages alone would miss who wrote ten years ago. Ids are returned
-- as JSON: 7,000 take 2 ms to read, rows 8 ms.
with size as materialized (
    select relpages, reltuples from pg_class where oid = 'messages'::regclass),
spread as materialized (
    select count(*) filter (where i.meets) >= greatest(
               count(*) * %(many)s::float8 / greatest((select reltuples from size), 1), %(least)s) as met,
           avg(i.meets::int)::float8 as share
      from messages m
     cross join lateral (select {indexed} as meets offset 0) i
     where m.ctid = any(array(
           select ('(' || n::bigint * s.relpages / %(spread)s::bigint || ',1)')::tid
             from size s
            cross join generate_series(0, %(spread)s - 1) as n)))
select coalesce(json_agg(f.message_id) filter (where f.passes), '[]'),
       s.met or count(f.passes) >= %(most)s, s.share
  from spread s
  left join lateral (
       select m.message_id, {passes_unindexed} as passes
         from {source} m
        where not s.met
        limit %(most)s) f on true
 group by s.met, s.share

-- name: newest
-- The newest or oldest messages that pass the filters.
select m.message_id, m.list, m.month, m.variant, o.place, t.thread_id, m.sent_at
  from {source} m
  left join shown_texts o using (message_id, list, month, variant)
  left join threads t on t.message_id = m.message_id and coalesce(o.place, 1) = 1
 where {passes}
 order by {by_date}, m.message_id, m.list, m.month, m.variant
 limit %(most)s

-- name: last_sent
-- Dates of the first and the last of some messages.
select min(sent_at), max(sent_at) from messages where message_id = any(%(message_ids)s)

-- name: is_stored
-- True if a message has the id, or a conversation has it as the id of a missing message.
select exists (select from shown_messages where message_id = %(message_id)s)
       or exists (select from shown_node(%(message_id)s))

-- name: by_id
-- Copies of one message that pass the filters.
select m.message_id, m.list, m.month, m.variant, o.place, t.thread_id, m.sent_at
  from messages m
  left join shown_texts o using (message_id, list, month, variant)
  left join threads t on t.message_id = m.message_id and coalesce(o.place, 1) = 1
 where m.message_id = %(message_id)s
   and {passes}
 order by o.place, m.arrived_at, break_tie(m.list, m.month, m.variant) collate "C"

-- name: page_copies
-- All copies of the messages on a page. Copies of one text have the same thread.
with copies as materialized (
    select m.message_id, m.list, m.month, m.variant, o.place, m.subject, m.from_name, m.from_email,
           m.sent_at, t.thread_id,
           array(select a.one ->> 'name' from jsonb_array_elements(m.attachments) as a (one)) as files
      from shown_messages m
      left join shown_texts o using (message_id, list, month, variant)
      left join threads t on t.message_id = m.message_id and coalesce(o.place, 1) = 1
     where m.message_id = any(array(select json_array_elements_text(%(message_ids)s)))),
shown as materialized (
    select d.thread_id, case when h.hides then shown_thread_id(d.thread_id) else d.thread_id end as id
      from (select distinct thread_id from copies) d
     cross join (select hides_lists() as hides offset 0) h)
select c.message_id, c.list, c.month, c.variant, c.place, c.subject, c.from_name, c.from_email,
       c.sent_at, s.id, c.files
  from copies c
  left join shown s using (thread_id)
 order by c.message_id, c.list, c.month, c.variant

-- name: page_chunks
-- Chunks of the messages on a page, in the copies that were found. They are read by message id first:
-- with list and month too, the planner would read all chunks of each month.
with of_messages as materialized (
    select key, list, month, message_id, variant, index, text, spans
      from chunks
     where message_id = any(array(select json_array_elements_text(%(message_ids)s))))
select p.place, c.key, c.index, c.text, c.spans
  from rows from (json_array_elements_text(%(message_ids)s),
                  json_array_elements_text(%(lists)s),
                  json_array_elements_text(%(months)s),
                  json_array_elements_text(%(variants)s))
       with ordinality as p (message_id, list, month, variant, place)
  join of_messages c
    on (c.message_id, c.list, c.month, c.variant)
       = (p.message_id, p.list, p.month, p.variant::smallint)
 order by p.place, c.index

-- name: page_threads
-- Size, people and first message of threads, counted over their copies in some lists. People are in the
-- order of the thread. Of a contested id only text 1 counts. offset 0: messages are looked up by id;
-- with list and month the planner would read whole months.
with members as materialized (
    select p.thread_id, t.position, m.message_id, m.list, m.month, m.variant, m.sent_at,
           m.arrived_at, lower(m.from_email) as author, m.from_email, m.from_name, m.subject_base,
           o.place is not null as contested
      from unnest(%(threads)s::text[]) as p (thread_id)
      join threads t using (thread_id)
     cross join lateral (
           select *
             from messages m
            where m.message_id = t.message_id
              and m.list = any(%(lists)s)
           offset 0) m
      left join shown_texts o
        on (o.message_id, o.list, o.month, o.variant)
           = (m.message_id, m.list, m.month, m.variant)
     where coalesce(o.place, 1) = 1),
sizes as materialized (
    select thread_id, count(distinct message_id) as messages, count(distinct author) as people,
           min(sent_at) as first_sent_at, max(sent_at) as last_sent_at,
           array_agg(distinct list) as lists
      from members
     group by thread_id),
authors as (
    select distinct on (thread_id, author) thread_id, position, from_name
      from members
     where from_name <> ''
     order by thread_id, author, position),
people as (
    select thread_id, from_name, row_number() over (
               partition by thread_id order by min(position)) as number
      from authors
     group by thread_id, from_name),
named as materialized (
    select thread_id, array_agg(from_name order by number) as names
      from people
     where number <= %(names)s
     group by thread_id),
firsts as materialized (
    select distinct on (thread_id) *
      from members
     order by thread_id, position, arrived_at, break_tie(list, month, variant) collate "C")
select s.thread_id, s.messages, s.people, s.first_sent_at, s.last_sent_at, s.lists,
       coalesce(n.names, '{}'), m.subject_base, m.message_id, m.from_name, m.from_email, m.sent_at,
       (select left(c.text, %(characters)s)
          from (select * from chunks c where c.message_id = m.message_id offset 0) c
         where (c.list, c.month, c.variant) = (m.list, m.month, m.variant)
         order by c.index
         limit 1),
       m.contested
  from sizes s
  join firsts m using (thread_id)
  left join named n using (thread_id)

-- name: stems
-- Lexemes of single words, each in a language; none for a stop word. The parser of PostgreSQL splits
-- some words; such a word is its own lexeme.
select w.language, w.word,
       case when exists (select from unnest(v.vector) where positions[1] > 1) then array[w.word]
            else array(select lexeme from unnest(v.vector) order by lexeme <> w.word, lexeme) end
  from unnest(%(languages)s::text[], %(words)s::text[]) as w (language, word)
 cross join lateral (
       select to_tsvector(w.language::regconfig, w.word) as vector offset 0) v

-- name: chunk_texts
-- First chunks of a message, to search for similar messages.
select c.text, m.subject_base
  from first_shown(%(message_id)s) m
  join chunks c using (list, month, message_id, variant)
 order by c.index
 limit %(most)s

-- name: facets
-- Counts of messages that pass the filters, by list, month, year, author, sender and kind, over the
-- newest up to a limit. A message counts once in each, no matter how many copies it has. If several
-- texts of an id match, the one that arrived first counts.
with matching as materialized (
    select m.message_id, m.list, m.month as archive, m.variant, m.sent_at at time zone 'UTC' as sent,
           lower(m.from_email) as author, nullif(m.from_name, '') as sender,
           m.segments @> '[["patch"]]' or m.attachments @> '[{"is_patch": true}]' as is_patch,
           m.in_reply_to <> '{}' or m.refs <> '{}' as is_reply,
           m.attachments <> '[]' as has_attachment
      from {source} m
     where {passes}
     order by {by_date}
     limit %(most)s),
counted as (
    select m.*, min(o.place) over (partition by m.message_id) as first, o.place
      from matching m
      left join shown_texts o
        on (o.message_id, o.list, o.month, o.variant)
           = (m.message_id, m.list, m.archive, m.variant))
select f.facet, f.value, count(distinct m.message_id)
  from counted m
 cross join lateral (
       values ('messages', ''), ('list', m.list), ('author', m.author),
              ('sender', m.sender),
              ('year', to_char(m.sent, 'FMYYYY')), ('month', to_char(m.sent, 'YYYY-MM')),
              ('kind', case when m.is_patch then 'patch' end),
              ('kind', case when m.is_reply then 'reply' else 'first' end),
              ('kind', case when m.has_attachment then 'attachment' end)) f (facet, value)
 where f.value is not null and m.place is not distinct from m.first
 group by f.facet, f.value
union all
select 'copies', '', count(*) from matching

-- name: corpus
-- Number of messages in the planner's statistics. If it changes, the statistics have changed.
select reltuples::bigint from pg_class where oid = 'messages'::regclass

-- name: word_shares
-- Share of messages per lexeme, for the most common ones in the statistics of the last ANALYZE.
select e.lexeme, e.share
  from pg_stats s
 cross join lateral unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs)
       as e (lexeme, share)
 where s.schemaname = current_schema() and s.tablename = 'messages' and s.attname = 'search'
   and e.lexeme is not null

-- name: unknown_lexemes
-- Lexemes that no message has. Each is also given as a tsquery.
select l.lexeme
  from unnest(%(lexemes)s::text[], %(queries)s::tsquery[]) as l (lexeme, query)
 where not exists (select from shown_messages m where m.search @@ l.query)

-- name: sampled_shares
-- Like word_shares before the first ANALYZE, from a sample of messages.
with sampled as materialized (select search from messages limit %(most)s)
select u.lexeme, count(*)::float8 / (select count(*) from sampled)
  from sampled, unnest(sampled.search) as u (lexeme, positions, weights)
 group by u.lexeme

-- name: senders
-- Addresses that a sender filter matches: the address itself if it exists, else all whose address or
-- name contains each word: "Lane, Tom" matches Tom G. Lane. The index senders_person finds the longest
-- word; it does not support "like all".
with exact as materialized (
    select address
      from senders
     where address = lower(%(sender)s) and list = any((select shown_lists())::text[])
     limit 1)
select address from exact
union all
(select distinct address
   from senders
  where not exists (select from exact)
    and list = any((select shown_lists())::text[])
    and person like like_pattern(fold_name(%(longest)s))
    and person like all(array(
            select like_pattern(fold_name(w.word)) from unnest(%(words)s::text[]) as w (word)))
  limit %(most)s)

-- name: senders_by_name
-- Addresses whose names contain each word. Addresses within names are ignored, also disguised ones.
-- Names are folded, so joATexampleDOTorg is in lower case here.
with wanted as materialized (
    select array(
               select like_pattern(fold_name(w.word))
                 from unnest(%(words)s::text[]) as w (word)) as parts)
select distinct s.address
  from wanted w
 cross join senders s
 cross join lateral (select left(s.person, -length(s.address) - 1) as name) n
 where s.person like like_pattern(fold_name(%(longest)s)) and s.list = any((select shown_lists())::text[])
   and regexp_replace(n.name, '\S*(?:@|\wat\w\S*dot)\S*', '', 'g') like all(w.parts)
   and (n.name !~ %(hints)s or n.name !~ %(signs)s
        or regexp_replace(n.name, %(addresses)s, e'\n', 'g') like all(w.parts))
 limit %(most)s

-- name: compile_addresses
-- Compiles the pattern of addresses as other statements use it. The session keeps it.
select regexp_replace('', %(addresses)s, e'\n', 'g')

-- name: near
-- Thread that contains an id or has it as an alias, and the subject of the thread in some lists. For a
-- message in no thread, its own subject.
with place as materialized (
    select thread_id from threads where message_id = %(id)s and not is_closed(message_id)
    union all
    select t.thread_id
      from thread_aliases a
      join threads t using (message_id)
     where a.id = %(id)s)
(select shown_thread_id(p.thread_id), m.subject_base
   from place p
   join threads t using (thread_id)
   join messages m on m.message_id = t.message_id and m.list = any(%(lists)s)
   left join shown_texts o
     on (o.message_id, o.list, o.month, o.variant) = (m.message_id, m.list, m.month, m.variant)
  where coalesce(o.place, 1) = 1
  order by t.position, m.arrived_at
  limit 1)
union all
(select null, m.subject_base
   from messages m
  where m.message_id = %(id)s and m.list = any(%(lists)s)
    and not exists (select from place)
  order by m.arrived_at
  limit 1)

-- name: thread
-- Thread of a message.
select thread_id from threads where message_id = %(message_id)s and not is_closed(message_id)

-- name: thread_ids
-- Messages of the thread of a message.
select o.message_id
  from threads t
  join threads o using (thread_id)
 where t.message_id = %(message_id)s and not is_closed(t.message_id)

-- name: threads_of
-- Threads of some messages, if they are stored. A message in no thread is its own thread.
select ids.id, coalesce(shown_thread_id(t.thread_id), ids.id)
  from unnest(%(message_ids)s::text[]) as ids (id)
  left join threads t on t.message_id = ids.id
 where exists (select from shown_messages m where m.message_id = ids.id)
