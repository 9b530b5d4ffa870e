-- Searching, and what a hit needs to be shown. Used by search/.
--
-- The filters stand in every statement that finds messages, in the same words: what the vector
-- bucket carries beside a vector can be older than the message.

-- name: senders
-- Addresses that a sender filter stands for: the address itself where it exists, else those
-- that hold the text in themselves or in the name beside them. The second reads every row.
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
    and (strpos(lower(from_email), lower(%(sender)s)) > 0
         or strpos(lower(from_name), lower(%(sender)s)) > 0)
  limit %(most)s)

-- name: question
-- A query in the stems of one language. Narrow: all words, or one of the identifiers, which
-- are exact lexemes. Wide: any of them, or a part of an identifier. No row where nothing is
-- left to look for.
select ((words || exact) && !! unwanted)::text as narrow,
       ((replace(words::text, ' & ', ' | ')::tsquery || exact || %(parts)s::tsquery)
        && !! unwanted)::text as wide
  from (select websearch_to_tsquery(%(language)s::regconfig, %(words)s) as words,
               websearch_to_tsquery(%(language)s::regconfig, %(unwanted)s) as unwanted,
               %(exact)s::tsquery as exact) parts
 where numnode(words || exact) > 0

-- name: fulltext
-- ts_rank, not ts_rank_cd, which is 0 for a lexeme without a position, as identifiers are;
-- divided by 1 + log(length), so that a long mail does not win by its length.
select m.message_id, m.list, m.month, m.variant,
       ts_rank(m.search, %(question)s::tsquery, 1)::float8 as score
  from messages m
 where m.search @@ %(question)s::tsquery
   and m.list = any(%(lists)s)
   and m.sent_at >= %(after)s::timestamptz
   and m.sent_at < %(before)s::timestamptz
   and (%(senders)s::text[] is null or lower(m.from_email) = any(%(senders)s))
 order by score desc, m.message_id, m.list, m.month, m.variant
 limit %(most)s

-- name: chunks
-- Those of the chunks that the vector index found whose message is there and passes.
select c.key, m.message_id, m.list, m.month, m.variant, c.index, c.text, c.spans
  from chunks c
  join messages m using (list, month, message_id, variant)
 where c.key = any(%(keys)s)
   and m.list = any(%(lists)s)
   and m.sent_at >= %(after)s::timestamptz
   and m.sent_at < %(before)s::timestamptz
   and (%(senders)s::text[] is null or lower(m.from_email) = any(%(senders)s))

-- name: speaking
-- The chunk of each message that has most of a query's identifiers, then of its words; the
-- first one where the words stand elsewhere, in the subject or a patch.
select p.place, best.key, best.index, best.text, best.spans
  from unnest(%(message_ids)s::text[], %(lists)s::text[], %(months)s::text[],
              %(variants)s::smallint[], %(languages)s::text[], %(questions)s::text[])
       with ordinality as p (message_id, list, month, variant, language, question, place)
 cross join lateral (
       select c.key, c.index, c.text, c.spans
         from chunks c
        where (c.message_id, c.list, c.month, c.variant)
            = (p.message_id, p.list, p.month, p.variant)
        order by (select count(*) from unnest(%(identifiers)s::text[]) as i (name)
                   where strpos(lower(c.text), i.name) > 0) desc,
                 ts_rank(to_tsvector(p.language::regconfig, c.text), p.question::tsquery, 1) desc,
                 c.index
        limit 1) best

-- name: messages
-- Every copy of the messages that are shown; the thread is the same for all.
select m.message_id, m.list, m.month, m.variant, m.subject, m.from_name, m.from_email,
       m.sent_at, t.thread_id
  from messages m
  left join threads t using (message_id)
 where m.message_id = any(%(message_ids)s)
 order by m.message_id, m.list, m.month, m.variant
