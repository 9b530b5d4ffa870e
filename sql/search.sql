-- The full-text leg, and what a hit needs to be shown. Used by search/.

-- name: senders
-- Addresses that match a part of a name or an address.
select distinct lower(from_email)
  from messages
 where strpos(lower(from_email), lower(%(sender)s)) > 0
    or strpos(lower(from_name), lower(%(sender)s)) > 0
 limit %(most)s

-- name: fulltext
-- Messages with all words first, then those with some of them where these are too few.
-- Identifiers are exact lexemes. ts_rank, not ts_rank_cd, which is 0 for a lexeme without a
-- position; divided by 1 + log(length), so that a long mail does not win by its length.
with question as materialized (
    select words.query as strict,
           case when %(identifiers)s::text[] = '{}' then null::tsquery
                else (select string_agg(quote_literal(i), ' | ')::tsquery
                        from unnest(%(identifiers)s::text[]) i)
           end as exact
      from (select websearch_to_tsquery(%(language)s::regconfig, %(query)s) as query) words),
queries as materialized (
    select case when numnode(strict) = 0 then exact
                when exact is null then strict
                else strict || exact end as narrow,
           case when numnode(strict) = 0 then exact
                when exact is null then replace(strict::text, ' & ', ' | ')::tsquery
                else replace(strict::text, ' & ', ' | ')::tsquery || exact end as wide
      from question),
narrow as (
    select m.list, m.month, m.message_id, m.variant, 1 as tier,
           ts_rank(m.search, q.narrow, 1)::float8 as score
      from messages m, queries q
     where m.search @@ q.narrow
       and (%(lists)s::text[] is null or m.list = any(%(lists)s))
       and (%(after)s::timestamptz is null or m.sent_at >= %(after)s)
       and (%(before)s::timestamptz is null or m.sent_at < %(before)s)
       and (%(senders)s::text[] is null or lower(m.from_email) = any(%(senders)s))
     order by score desc, m.message_id, m.list, m.month
     limit %(most)s),
wide as (
    select m.list, m.month, m.message_id, m.variant, 2 as tier,
           ts_rank(m.search, q.wide, 1)::float8 as score
      from messages m, queries q
     where (select count(*) from narrow) < %(most)s
       and m.search @@ q.wide
       and (%(lists)s::text[] is null or m.list = any(%(lists)s))
       and (%(after)s::timestamptz is null or m.sent_at >= %(after)s)
       and (%(before)s::timestamptz is null or m.sent_at < %(before)s)
       and (%(senders)s::text[] is null or lower(m.from_email) = any(%(senders)s))
     order by score desc, m.message_id, m.list, m.month
     limit %(most)s),
ranked as (
    select distinct on (list, month, message_id, variant) *
      from (select * from narrow union all select * from wide) found
     order by list, month, message_id, variant, tier)
select r.message_id, r.list, r.month, r.tier, r.score,
       best.key, best.index, best.text, best.spans
  from ranked r
  left join lateral (
       select c.key, c.index, c.text, c.spans
         from chunks c, queries q
        where (c.list, c.month, c.message_id, c.variant)
            = (r.list, r.month, r.message_id, r.variant)
        order by ts_rank(to_tsvector(%(language)s::regconfig, c.text), q.wide, 1) desc, c.index
        limit 1) best on true
 order by r.tier, r.score desc, r.message_id, r.list, r.month
 limit %(most)s

-- name: chunks
select c.key, c.list, c.month, c.message_id, c.index, c.text, c.spans
  from chunks c
 where c.key = any(%(keys)s)

-- name: messages
-- Every copy of the messages that are shown; the thread is the same for all.
select m.message_id, m.list, m.month, m.subject, m.from_name, m.from_email, m.sent_at,
       t.thread_id
  from messages m
  left join threads t using (message_id)
 where m.message_id = any(%(message_ids)s) and m.variant = 0
 order by m.message_id, m.list, m.month
