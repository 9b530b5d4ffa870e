-- Chunks of one month. Used by tables/chunks.py.

-- name: stage
-- The table is created once per connection, and each transaction empties it.
create temporary table if not exists chunks_stage (like chunks) on commit delete rows

-- name: copy
copy chunks_stage (key, list, month, message_id, variant, index, text, spans, tokens, text_hash)
from stdin

-- name: analyze_stage
-- Without the texts, which take as long to analyze as to write. Other columns are only compared.
analyze chunks_stage (key)

-- name: upsert
-- The variant may change under an unchanged key, because the key has the hash of the content. Rows are
-- compared as a whole, so that they are looked up by key: by text, all chunks that repeat it are read.
insert into chunks
select s.*
  from chunks_stage s
 where not exists (
       select from chunks c
        where c.key = s.key
          and (c.list, c.month, c.message_id, c.variant, c.index, c.text_hash, c.spans, c.tokens,
               c.text)
              is not distinct from
              (s.list, s.month, s.message_id, s.variant, s.index, s.text_hash, s.spans, s.tokens,
               s.text))
 order by s.key
on conflict (key) do update
   set list = excluded.list, month = excluded.month, message_id = excluded.message_id,
       variant = excluded.variant, index = excluded.index, text = excluded.text,
       spans = excluded.spans, tokens = excluded.tokens, text_hash = excluded.text_hash

-- name: delete_vanished
delete from chunks c
 where c.list = %(list)s and c.month = %(month)s
   and not exists (select from chunks_stage s where s.key = c.key)

-- name: text_sizes
-- Distinct texts, ordered by hash.
select distinct on (text_hash) text_hash, tokens
  from chunks
 where list = %(list)s and month = %(month)s
 order by text_hash

-- name: documents
-- Distinct texts with the subject that the encoder reads before each. Looked up one by one: before
-- the first ANALYZE a join expects one row per table and takes a minute.
select distinct on (text_hash) text_hash,
       (select subject_base from messages m
         where (m.list, m.month, m.message_id, m.variant)
             = (c.list, c.month, c.message_id, c.variant)),
       text
  from chunks c
 where list = %(list)s and month = %(month)s and text_hash = any(%(hashes)s)
 order by text_hash

-- name: elsewhere
-- Texts that other months have already encoded (cross-posts, monthly postings), each with one such
-- month, so that a text of 300 months is read from one file. Only the 20 months that stored a text
-- first are considered. The encoder of a month is looked up in a scalar comparison, which the planner
-- cannot turn into a join: before the first ANALYZE a join would read all chunks of all encoded
-- months for each text.
select o.list, o.month, array_agg(h.text_hash)
  from unnest(%(hashes)s::bytea[]) as h (text_hash)
 cross join lateral (
       select c.list, c.month
         from (select list, month
                 from chunks
                where text_hash = h.text_hash and (list, month) <> (%(list)s, %(month)s)
                limit 20) c
        where (select right(p.inputs, length(%(encoder)s))
                 from partitions p
                where (p.asset, p.list, p.month) = ('embeddings', c.list, c.month)) = %(encoder)s
        limit 1) o
 group by o.list, o.month
 order by o.list, o.month

-- name: left
-- Number of chunks left to encode: for each month whose embeddings are outdated, its chunks less the
-- texts that this encoder encoded last. Reads states only, so a text of several months counts in each.
select coalesce(sum(greatest(0, (c.counts->>'chunks')::bigint - case
           when e.inputs like '%% encoder ' || %(encoder)s then (e.counts->>'texts')::bigint
           else 0 end)), 0)::bigint
  from partitions c
  left join partitions e on (e.asset, e.list, e.month) = ('embeddings', c.list, c.month)
 where c.asset = 'chunks'
   and e.inputs is distinct from c.digest || ' encoder ' || %(encoder)s

-- name: for_vectors
-- Looked up chunk by chunk. If the month is newer than the last ANALYZE, a join expects one message
-- and reads the whole month for each chunk (6,000 chunks: 2.4 s instead of 0.04 s).
select c.key, c.text_hash, c.index, c.message_id, m.from_email, m.sent_at, m.subject_base, m.kind
  from chunks c
 cross join lateral (
       select from_email, extract(epoch from sent_at)::bigint as sent_at, subject_base,
              case when segments @> '[["patch"]]' or attachments @> '[{"is_patch": true}]'
                   then 'patch' else 'text' end as kind
         from messages
        where (list, month, message_id, variant) = (c.list, c.month, c.message_id, c.variant)
        limit 1) m
 where c.list = %(list)s and c.month = %(month)s
 order by c.key
