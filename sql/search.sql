-- Finding messages, and reading what a hit shows. Used by search/.
--
-- {passes} is replaced by the conditions of sql/filters.sql that a request has. They are in every
-- statement that finds messages, because the metadata of a vector can be older than its message.
-- {passes_in_lists} are those beside the lists, where these are compared otherwise, and
-- {passes_beside_indexed} those that are not met already. {source} is the table of messages, or a
-- statement, `indexed` or `walked`.

-- name: question
-- A query in the stems of one language. narrow: all words, or one of the identifiers, which are
-- exact lexemes. required: the phrases, and none of the excluded words; phrased: whether there are
-- phrases. No row if no lexeme is left to search for or to exclude.
select (words || exact)::text as narrow,
       case when numnode(phrases) + numnode(unwanted) = 0 then ''
            else (phrases && !! unwanted)::text end as required,
       numnode(phrases) > 0 as phrased,
       tsvector_to_array(to_tsvector(%(language)s::regconfig, %(plain)s)) as lexemes,
       tsvector_to_array(to_tsvector(%(language)s::regconfig, %(names)s)) as pieces
  from (select websearch_to_tsquery(%(language)s::regconfig, %(words)s) as words,
               websearch_to_tsquery(%(language)s::regconfig, %(phrases)s) as phrases,
               websearch_to_tsquery(%(language)s::regconfig, %(unwanted)s) as unwanted,
               %(exact)s::tsquery as exact) parts
 where numnode(words || exact) + numnode(unwanted) > 0

-- name: lexemes
-- Texts in one language: as a phrase, as lexemes in their order, the places of these, the words that
-- have no lexeme, and the text in lower case. What is not ASCII begins words whose stems may have other
-- letters (Äpf, apf): those that the stemmer leaves where no ending is behind them (qaqq).
select phraseto_tsquery(%(language)s::regconfig, t.text)::text,
       array(select w.lexeme
               from unnest(to_tsvector(%(language)s::regconfig, t.text)) as w
              cross join lateral unnest(w.positions) as p (place) order by p.place, w.lexeme),
       array(select p.place
               from unnest(to_tsvector(%(language)s::regconfig, t.text)) as w
              cross join lateral unnest(w.positions) as p (place) order by p.place, w.lexeme),
       array(select distinct lower(w.match[1])
               from regexp_matches(t.text, '[[:alnum:]]+', 'g') as w (match)
              where to_tsvector(%(language)s::regconfig, w.match[1]) = ''),
       lower(t.text),
       array(select left(w.lexeme, -4)
               from unnest(to_tsvector(%(language)s::regconfig, t.text || 'qaqq')) as w
              where octet_length(t.text) > length(t.text) and w.lexeme ~ '.qaqq$')
  from unnest(%(texts)s::text[]) with ordinality as t (text, number)
 order by t.number

-- name: stored
-- What the indexes found, as it is stored now: copies of messages by words, at places from 1, and
-- chunks by meaning, at places from -1 downwards, null where one was refused before; those that exist
-- and pass the filters. Of the best one by words, which lexemes it has; of each, whether its new text
-- is brief. At place 0 the messages of the best threads, those of each in its order, so many of each.
-- Messages are found by what was asked and filtered then (offset 0): of files and receivers the
-- planner expects 4 messages, and would begin with the 3,000 that there are. The lists are compared
-- before the messages are read: an index that is read with an array of them takes four times as long
-- for each row.
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
      from unnest(%(found_keys)s::text[]) with ordinality as k (key, place)
      join chunks c on c.key = k.key
     where c.list = any(%(lists)s)),
found as materialized (
    select a.place, m.message_id, m.list, m.month, m.variant, t.thread_id,
           t.thread_id is not null and t.parent_id is null as begins,
           m.new_text_length < %(found_brief)s as is_brief
      from asked a
     cross join lateral (
           select m.message_id, m.list, m.month, m.variant, m.new_text_length
             from messages m
            where (m.list, m.month, m.message_id, m.variant)
                  = (a.list, a.month, a.message_id, a.variant)
              and {passes_in_lists}
           offset 0) m
      left join threads t on t.message_id = m.message_id),
best_threads as (
    select thread_id, min(abs(place)) as place
      from found
     where thread_id is not null
     group by thread_id
     order by place, thread_id
     limit %(found_threads)s)
select f.place, f.message_id, f.list, f.month, f.variant, f.thread_id, f.begins, f.is_brief,
       case when f.place = (select min(place) from found where place > 0) then
            array(select l.lexeme
                    from unnest(%(found_lexemes)s::text[], %(found_queries)s::tsquery[]) as l (lexeme, query)
                    join messages m on (m.list, m.month, m.message_id, m.variant)
                                     = (f.list, f.month, f.message_id, f.variant)
                                   and m.search @@ l.query) end
  from found f
union all
select 0, w.message_id, w.list, w.month, w.variant, b.thread_id, false, false, null
  from best_threads b
 cross join lateral (
       select m.message_id, m.list, m.month, m.variant
         from threads t
        cross join lateral (
              select m.message_id, m.list, m.month, m.variant
                from messages m
               where m.message_id = t.message_id
                 and {passes}
              offset 0) m
        where t.thread_id = b.thread_id
        order by t.position, m.list, m.month, m.variant
        limit %(found_members)s) w

-- name: indexed
-- The messages that an index finds for the filters. Planned apart (offset 0): for a limit, or for the
-- newest, the planner would rather read messages as they come until enough pass, which may be none.
select * from messages m where {indexed} offset 0

-- name: walked
-- The newest messages of the lists and days that are asked, up to a limit.
select * from messages m where {walked} order by m.sent_at desc limit %(walked)s

-- name: horizon
-- When the first message was sent that is not among these; no row where all are.
select m.sent_at from messages m where {walked} order by m.sent_at desc limit 1 offset %(walked)s

-- name: indexed_count
-- How many messages an index finds, up to a limit.
select count(*) from (select from {source} m limit %(most)s) f

-- name: passing
-- Which of the messages that an index finds, up to a limit, pass the filters. Of what many messages
-- meet, nothing is asked: to find 300,000 takes the index of a pattern 100 ms. A row without an id then
-- says so, and which share of all it is. That is told by one message in each of some pages, evenly
-- spread, if enough of these meet it: the newest know nothing of who wrote ten years ago.
with size as materialized (
    select relpages, reltuples from pg_class where oid = 'messages'::regclass),
spread as materialized (
    select count(*) filter (where {indexed}) >= greatest(
               count(*) * %(many)s::float8 / greatest((select reltuples from size), 1), %(least)s) as met,
           avg(({indexed})::int)::float8 as share
      from messages m
     where m.ctid = any(array(
           select ('(' || n::bigint * s.relpages / %(spread)s::bigint || ',1)')::tid
             from size s
            cross join generate_series(0, %(spread)s - 1) as n)))
(select m.message_id, {passes_beside_indexed}, (select share from spread)
   from {source} m
  where not (select met from spread)
  limit %(most)s)
union all
select null, false, share from spread where met

-- name: newest
-- The newest messages that pass the filters.
select m.message_id, m.list, m.month, m.variant, t.thread_id
  from {source} m
  left join threads t on t.message_id = m.message_id
 where {passes}
 order by m.sent_at desc, m.message_id, m.list, m.month, m.variant
 limit %(most)s

-- name: last_sent
-- When the last of some messages was sent.
select max(sent_at) from messages where message_id = any(%(message_ids)s)

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
-- The chunks of the messages on a page, in the copies that were found. They are read by their ids
-- first: by list and month as well, the planner would read all chunks of each month.
with of_messages as materialized (
    select key, list, month, message_id, variant, index, text, spans
      from chunks
     where message_id = any(%(message_ids)s))
select p.place, c.key, c.index, c.text, c.spans
  from unnest(%(message_ids)s::text[], %(lists)s::text[], %(months)s::text[],
              %(variants)s::smallint[])
       with ordinality as p (message_id, list, month, variant, place)
  join of_messages c using (message_id, list, month, variant)
 order by p.place, c.index

-- name: stems
-- The lexemes of each word, in its language.
select w.language, w.word, tsvector_to_array(to_tsvector(w.language::regconfig, w.word))
  from unnest(%(languages)s::text[], %(words)s::text[]) as w (language, word)

-- name: chunk_texts
-- The first chunks of a message, from which similar messages are searched.
select c.text, m.subject_base
  from chunks c
  join messages m using (list, month, message_id, variant)
 where c.message_id = %(message_id)s and c.variant = 0
 order by c.list, c.month, c.index
 limit %(most)s

-- name: facets
-- How many messages pass the filters, by list, month, year, author, sender and kind: of the newest,
-- up to a limit. A message is counted once in each, however many copies it has.
with matching as materialized (
    select m.message_id, m.list, m.sent_at at time zone 'UTC' as sent,
           lower(m.from_email) as author, nullif(m.from_name, '') as sender,
           m.segments @> '[["patch"]]' or m.attachments @> '[{"is_patch": true}]' as is_patch,
           m.in_reply_to <> '{}' or m.refs <> '{}' as is_reply,
           m.attachments <> '[]' as has_attachment
      from {source} m
     where {passes}
     order by m.sent_at desc
     limit %(most)s)
select f.facet, f.value, count(distinct m.message_id)
  from matching m
 cross join lateral (
       values ('messages', ''), ('list', m.list), ('author', m.author),
              ('sender', m.sender),
              ('year', to_char(m.sent, 'FMYYYY')), ('month', to_char(m.sent, 'YYYY-MM')),
              ('kind', case when m.is_patch then 'patch' end),
              ('kind', case when m.is_reply then 'reply' else 'first' end),
              ('kind', case when m.has_attachment then 'attachment' end)) f (facet, value)
 where f.value is not null
 group by f.facet, f.value
union all
select 'copies', '', count(*) from matching
