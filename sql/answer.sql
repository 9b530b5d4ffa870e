-- The excerpts that a chat model answers from. Used by answers/excerpts.py.

-- name: chunks
-- Chunks by their keys, grouped by message, so that each body is read once. Keys without a chunk,
-- such as the one before the first, are ignored, and so is a chunk without text of its own.
select m.body_text, json_agg(json_build_array(c.key, c.spans, c.tokens))
  from chunks c
  join messages m using (list, month, message_id, variant)
 where c.key = any(%(keys)s) and c.text <> ''
 group by m.list, m.month, m.message_id, m.variant
