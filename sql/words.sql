-- Documents of the word index. Used by indexes/words.py.

-- name: messages
-- Messages of a month, without their words. For `(select ...)` around the list see messages.sql.
select message_id, variant, content_hash, row_hash
  from messages
 where list = (select %(list)s) and month = %(month)s

-- name: documents
-- Lexemes of a search vector (tables/search_vectors.py) in the order of their positions: the subject
-- (weight A), the text (B), and others, across which no phrase matches; names come last. Stop words
-- are left out. `written`: words as written, which have no position. The flags are conditions of
-- filters.sql. Looked up one by one: see `for_vectors` in chunks.sql.
select m.message_id, m.variant, extract(epoch from m.sent_at)::bigint as sent_at,
       lower(m.from_email) as sender, m.flags, s.subject, s.text, s.further || m.identifiers,
       w.written
  from unnest(%(message_ids)s::text[], %(variants)s::smallint[]) as wanted (message_id, variant)
 cross join lateral (
       select message_id, variant, sent_at, from_email, search, identifiers,
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
              coalesce(array_agg(lexeme order by position)
                  filter (where weight = 'B'), '{}') as text,
              coalesce(array_agg(lexeme order by position, lexeme collate "C")
                  filter (where weight in ('C', 'D')), '{}') as further
         from (select lexeme, unnest(positions) as position, unnest(weights) as weight
                 from unnest(m.search)
                where not starts_with(lexeme, '=')) p) s
 cross join lateral (
       select coalesce(array_agg(lexeme order by lexeme collate "C"), '{}') as written
         from (select lexeme
                 from unnest(m.search)
                where positions is null and not starts_with(lexeme, '=')
               except
               select unnest(m.identifiers)) w) w
