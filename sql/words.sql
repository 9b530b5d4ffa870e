-- The manifest of the word index, and the documents of messages. Used by tables/indexes.py and
-- tables/words.py.

-- name: read
select key, digest, written
  from words
 where index_name = %(index_name)s and list = %(list)s and month = %(month)s

-- name: mark_intended
insert into words (index_name, list, month, key, digest, written)
select %(index_name)s, %(list)s, %(month)s, key, digest, false
  from unnest(%(keys)s::text[], %(digests)s::bytea[]) as intended (key, digest)
on conflict (index_name, key) do update
   set digest = excluded.digest, written = false

-- name: mark_written
update words set written = true
 where index_name = %(index_name)s and list = %(list)s and month = %(month)s and not written

-- name: mark_lost
-- Whole corpus: an index is created, which has nothing of what was written into one of its name. The
-- months that had something there are made of nothing.
with lost as (
    update words set written = false
     where index_name = %(index_name)s and written
    returning list, month)
update partitions p
   set inputs = ''
  from (select distinct list, month from lost) l
 where (p.asset, p.list, p.month) = ('words', l.list, l.month)
   and right(p.inputs, length(%(index_name)s) + 1) = ' ' || %(index_name)s

-- name: drop_keys
delete from words where index_name = %(index_name)s and key = any(%(keys)s)

-- name: remove
-- Whole corpus: an index is retired.
delete from words where index_name = %(index_name)s

-- name: count
-- Whole corpus: somebody lists the indexes, or promotes one.
select count(*) from words where index_name = %(index_name)s and written

-- name: count_by_month
-- The keys of each month of some lists, and those that are written.
-- Whole corpus: a backfill asks once for all of its months.
select list, month, count(*), count(*) filter (where written)
  from words
 where index_name = %(index_name)s and list = any(%(lists)s)
 group by list, month

-- name: complete
-- Whether the words of every month were written into an index as its messages are now.
select exists (select from words where index_name = %(index_name)s and written)
   and not exists (
       select from partitions m
        where m.asset = 'messages'
          and not exists (
              select from partitions w
               where w.asset = 'words' and w.list = m.list and w.month = m.month
                 and w.inputs = m.digest || ' ' || %(index_name)s))

-- name: messages
-- What the documents of a month are made from: its messages, without reading their words. Here and
-- below the list is named as messages.sql says.
select message_id, variant, content_hash, row_hash
  from messages
 where list = (select %(list)s) and month = %(month)s

-- name: documents
-- The lexemes of a tsvector in the order of their positions, those of the subject (weight A) and the
-- rest; names as written have no position and come last. The flags are conditions of filters.sql.
-- Messages are looked up one by one: see for_vectors in chunks.sql.
select m.message_id, m.variant, extract(epoch from m.sent_at)::bigint as sent_at,
       lower(m.from_email) as sender, m.flags, s.subject, s.rest
  from unnest(%(message_ids)s::text[], %(variants)s::smallint[]) as wanted (message_id, variant)
 cross join lateral (
       select message_id, variant, sent_at, from_email, search,
              array_remove(array[
                  case when segments @> '[["patch"]]' or attachments @> '[{"is_patch": true}]'
                       then 'patch' end,
                  case when attachments <> '[]' then 'attachment' end,
                  case when in_reply_to <> '{}' or refs <> '{}' then 'reply' else 'first' end],
                  null) as flags
         from messages
        where list = (select %(list)s) and month = %(month)s
          and message_id = wanted.message_id and variant = wanted.variant
        limit 1) m
 cross join lateral (
       select coalesce(array_agg(lexeme order by position)
                  filter (where weight = 'A'), '{}') as subject,
              coalesce(array_agg(lexeme order by position, lexeme collate "C")
                  filter (where weight is distinct from 'A'), '{}') as rest
         from (select lexeme, unnest(coalesce(positions, '{null}')) as position,
                      unnest(coalesce(weights, '{null}')) as weight
                 from unnest(m.search)) p) s
