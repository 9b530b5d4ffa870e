-- What an answer is made from. Used by answers/excerpts.py.

-- name: pieces
-- Chunks by their keys, message by message, each body once. Those that are not there, such as the
-- one before the first, are left out, and so is a chunk that is nothing but its subject.
select m.body_text, json_agg(json_build_array(c.key, c.spans, c.tokens))
  from chunks c
  join messages m using (list, month, message_id, variant)
 where c.key = any(%(keys)s) and c.text <> ''
 group by m.list, m.month, m.message_id, m.variant
