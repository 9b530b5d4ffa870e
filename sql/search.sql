-- Finding messages, and reading what a hit shows. Used by search/.
--
-- {passes} is replaced by the conditions of sql/filters.sql that a request has. They are in every
-- statement that finds messages, because the metadata of a vector can be older than its message.

-- name: senders
-- The addresses that a sender filter matches: the address itself if it exists, else those that
-- contain the text in the address or in the name beside it (index messages_sender).
with exact as materialized (
    select lower(from_email) as address
      from messages
     where lower(from_email) = lower(%(sender)s)
     limit 1)
select address from exact
union all
(select distinct lower(from_email)
   from messages
  where not exists (select from exact)
    and lower(from_name || ' ' || from_email) like %(pattern)s
  limit %(most)s)

-- name: thread
-- The thread of a message.
select thread_id from threads where message_id = %(message_id)s

-- name: question
-- A query in the stems of one language. narrow: all words, or one of the identifiers, which are
-- exact lexemes. required: the phrases, and none of the excluded words. No row if no lexeme is
-- left to search for.
select (words || exact)::text as narrow,
       case when numnode(phrases) + numnode(unwanted) = 0 then ''
            else (phrases && !! unwanted)::text end as required,
       tsvector_to_array(to_tsvector(%(language)s::regconfig, %(plain)s)) as lexemes,
       tsvector_to_array(to_tsvector(%(language)s::regconfig, %(names)s)) as pieces
  from (select websearch_to_tsquery(%(language)s::regconfig, %(words)s) as words,
               websearch_to_tsquery(%(language)s::regconfig, %(phrases)s) as phrases,
               websearch_to_tsquery(%(language)s::regconfig, %(unwanted)s) as unwanted,
               %(exact)s::tsquery as exact) parts
 where numnode(words || exact) > 0

-- name: lexemes
-- Texts in one language: as a phrase, as lexemes in their order, and the places of these.
select phraseto_tsquery(%(language)s::regconfig, t.text)::text,
       array(select w.lexeme
               from unnest(to_tsvector(%(language)s::regconfig, t.text)) as w
              cross join lateral unnest(w.positions) as p (place) order by p.place, w.lexeme),
       array(select p.place
               from unnest(to_tsvector(%(language)s::regconfig, t.text)) as w
              cross join lateral unnest(w.positions) as p (place) order by p.place, w.lexeme)
  from unnest(%(texts)s::text[]) with ordinality as t (text, number)
 order by t.number

-- name: frequencies
-- How many messages there are, and how many contain each lexeme. PostgreSQL knows it of the 1,000
-- most common ones from its last ANALYZE; the others are counted, up to a limit.
with corpus as materialized (
    select case when reltuples > 0 then reltuples::bigint
                else (select count(*) from messages) end as messages
      from pg_class where oid = 'messages'::regclass),
known as materialized (
    select e.lexeme, e.share
      from pg_stats s
     cross join lateral unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs)
           as e (lexeme, share)
     where s.schemaname = current_schema() and s.tablename = 'messages' and s.attname = 'search'
       and e.lexeme = any(%(lexemes)s))
select corpus.messages,
       coalesce((select round(known.share * corpus.messages)::bigint
                   from known where known.lexeme = l.lexeme),
                (select count(*)
                   from (select from messages m where m.search @@ l.query limit %(most)s) c))
  from corpus, unnest(%(lexemes)s::text[], %(queries)s::tsquery[]) with ordinality
       as l (lexeme, query, place)
 order by l.place

-- name: fulltext
-- BM25 (Robertson, Zaragoza 2009) over the newest of the messages that match. ts_rank of one
-- lexeme with all weights 1 is (1 + 1/4 + ... + 1/n^2) / (pi^2 / 6) for n occurrences, so n is
-- about 1 / (pi^2 / 6 - sum) - 1/2. Positions of weight A are in the subject. An identifier
-- without a position counts once. The tsvector is unpacked once (|| ''), not for each lexeme.
with terms as materialized (
    select * from unnest(%(queries)s::tsquery[], %(weights)s::float8[]) as t (query, weight)),
matching as materialized (
    select m.message_id, m.list, m.month, m.variant, m.search
      from messages m
     where m.search @@ %(question)s::tsquery
       and {passes}
     order by m.sent_at desc, m.message_id
     limit %(candidates)s)
select best.message_id, best.list, best.month, best.variant, t.thread_id, best.score, best.covered
  from (select c.message_id, c.list, c.month, c.variant, scored.score, scored.covered
          from matching c
         cross join lateral (select c.search || '' as search, length(c.search) as size offset 0) doc
         cross join lateral (
               select sum(weight * tf * %(k1_1)s
                          / (tf + %(k1)s * (1 - %(b)s + %(b)s * doc.size / %(pivot)s))) as score,
                      sum(weight) as covered
                 from (select weight,
                              round(1 / (1.64493407 - least(everywhere, 1.6449)) - 0.5)
                              + (%(heading)s - 1)
                              * round(1 / (1.64493407 - least(in_subject, 1.6449)) - 0.5) as tf
                         from (select weight,
                                      1.64493407 * ts_rank('{1,1,1,1}', doc.search, query)
                                      as everywhere,
                                      1.64493407 * ts_rank('{0,0,0,1}', doc.search, query)
                                      as in_subject
                                 from terms offset 0) ranks
                        where everywhere > 0 offset 0) counts) scored
         where scored.score is not null
         order by scored.score desc, c.message_id, c.list, c.month, c.variant
         limit %(most)s) best
  left join threads t on t.message_id = best.message_id
 order by best.score desc, best.message_id, best.list, best.month, best.variant

-- name: chunks
-- The messages of the chunks that the vector index found, if they exist and pass the filters.
select c.key, m.message_id, m.list, m.month, m.variant, t.thread_id
  from chunks c
  join messages m using (list, month, message_id, variant)
  left join threads t on t.message_id = m.message_id
 where c.key = any(%(keys)s)
   and {passes}

-- name: passing
-- The messages that pass the filters, up to a limit.
select distinct m.message_id
  from messages m
 where {passes}
 limit %(most)s

-- name: members
-- The messages of some threads that pass the filters, in the order of the thread.
select m.message_id, m.list, m.month, m.variant, t.thread_id
  from threads t
  join messages m on m.message_id = t.message_id
 where t.thread_id = any(%(threads)s)
   and {passes}
 order by t.thread_id, t.position, m.list, m.month, m.variant
 limit %(most)s

-- name: newest
-- The newest messages that pass the filters.
select m.message_id, m.list, m.month, m.variant, t.thread_id
  from messages m
  left join threads t on t.message_id = m.message_id
 where {passes}
 order by m.sent_at desc, m.message_id, m.list, m.month, m.variant
 limit %(most)s

-- name: by_id
-- The copies of one message that pass the filters.
select m.message_id, m.list, m.month, m.variant, t.thread_id
  from messages m
  left join threads t on t.message_id = m.message_id
 where m.message_id = %(message_id)s
   and {passes}
 order by m.list, m.month, m.variant

-- name: page_copies
-- Every copy of the messages on a page; the thread is the same for all.
select m.message_id, m.list, m.month, m.variant, m.subject, m.from_name, m.from_email,
       m.sent_at, t.thread_id,
       array(select a.one ->> 'name' from jsonb_array_elements(m.attachments) as a (one))
  from messages m
  left join threads t using (message_id)
 where m.message_id = any(%(message_ids)s)
 order by m.message_id, m.list, m.month, m.variant

-- name: page_chunks
-- The chunks of the messages on a page, in the copies that were found.
select p.place, c.key, c.index, c.text, c.spans
  from unnest(%(message_ids)s::text[], %(lists)s::text[], %(months)s::text[],
              %(variants)s::smallint[])
       with ordinality as p (message_id, list, month, variant, place)
  join chunks c on (c.message_id, c.list, c.month, c.variant)
                 = (p.message_id, p.list, p.month, p.variant)
 order by p.place, c.index

-- name: stems
-- Which words have one of the lexemes as their stem.
select w.word, s.lexeme
  from unnest(%(words)s::text[]) as w (word)
 cross join lateral unnest(to_tsvector(%(language)s::regconfig, w.word)) as s (lexeme)
 where s.lexeme = any(%(lexemes)s)

-- name: chunk_texts
-- The first chunks of a message, from which similar messages are searched.
select c.text, m.subject_base
  from chunks c
  join messages m using (list, month, message_id, variant)
 where c.message_id = %(message_id)s and c.variant = 0
 order by c.list, c.month, c.index
 limit %(most)s

-- name: facets
-- How many messages pass the filters, by list, year, author and kind: of the newest, up to a limit.
-- A message is counted once in each, however many copies it has.
with matching as materialized (
    select m.message_id, m.list, extract(year from m.sent_at at time zone 'UTC')::text as year,
           lower(m.from_email) as author,
           m.segments @> '[["patch"]]' or m.attachments @> '[{"is_patch": true}]' as is_patch,
           m.in_reply_to <> '{}' or m.refs <> '{}' as is_reply,
           m.attachments <> '[]' as has_attachment
      from messages m
     where {passes}
     order by m.sent_at desc
     limit %(most)s)
select f.facet, f.value, count(distinct m.message_id)
  from matching m
 cross join lateral (
       values ('messages', ''), ('list', m.list), ('year', m.year), ('author', m.author),
              ('kind', case when m.is_patch then 'patch' end),
              ('kind', case when m.is_reply then 'reply' else 'first' end),
              ('kind', case when m.has_attachment then 'attachment' end)) f (facet, value)
 where f.value is not null
 group by f.facet, f.value
union all
select 'copies', '', count(*) from matching
