-- How many messages have a word, as PostgreSQL's statistics say. Used by search/frequencies.py.

-- name: corpus
-- How many messages there are, as VACUUM and ANALYZE counted them: another number, other statistics.
select reltuples::bigint from pg_class where oid = 'messages'::regclass

-- name: word_shares
-- The share of messages that have a lexeme, for the commonest ones as the last ANALYZE found them.
select e.lexeme, e.share
  from pg_stats s
 cross join lateral unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs)
       as e (lexeme, share)
 where s.schemaname = current_schema() and s.tablename = 'messages' and s.attname = 'search'
   and e.lexeme is not null

-- name: sampled_shares
-- The same before the first ANALYZE: of some messages.
with sampled as materialized (select search from messages limit %(most)s)
select u.lexeme, count(*)::float8 / (select count(*) from sampled)
  from sampled, unnest(sampled.search) as u (lexeme, positions, weights)
 group by u.lexeme
