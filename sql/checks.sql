-- What must hold of a month. Used by tables/checks.py.

-- name: message_counts
select a.found, a.bytes, a.object_key is not null as archived,
       (select count(*) from messages m where m.list = a.list and m.month = a.month) as stored,
       coalesce((p.counts->>'duplicates')::int, 0) as duplicates,
       (select count(*) from quarantine q where q.list = a.list and q.month = a.month)
           as quarantined,
       (select count(*) from removed_messages r where r.list = a.list and r.month = a.month)
           as removed,
       coalesce((p.counts->>'suspicious')::int, 0) as suspicious
  from mbox_archives a
  left join partitions p on p.asset = 'messages' and p.list = a.list and p.month = a.month
 where a.list = %(list)s and a.month = %(month)s

-- name: undated
select count(*) filter (where date_source <> 'date'), count(*)
  from messages
 where list = %(list)s and month = %(month)s

-- name: unthreaded
-- A reply by its subject, with no reference at all; and messages that threads does not know.
select count(*) filter (
           where m.subject ~* '^\s*(\[[^]]*\]\s*)*(re|aw|sv|antw)\s*(\[\d+\])?:'
             and m.refs = '{}' and m.in_reply_to = '{}'),
       count(*) filter (where t.message_id is null),
       count(*)
  from messages m
  left join threads t using (message_id)

-- name: wrong_spans
-- Chunks whose text is not exactly what their spans cut out of the body, which is looked up chunk
-- by chunk: see for_vectors in chunks.sql.
select count(*)
  from chunks c
  left join lateral (
       select body_text
         from messages
        where (list, month, message_id, variant) = (c.list, c.month, c.message_id, c.variant)
        limit 1) m on true
 where c.list = %(list)s and c.month = %(month)s
   and (m.body_text is null
        or mod(cardinality(c.spans), 2) = 1
        or c.text is distinct from coalesce((
           select string_agg(
                      substr(m.body_text, c.spans[i] + 1,
                             greatest(c.spans[i + 1] - c.spans[i], 0)), ''
                      order by i)
             from generate_series(1, cardinality(c.spans), 2) i), '')
        or exists (
           select from generate_series(1, cardinality(c.spans), 2) i
            where c.spans[i] < 0 or c.spans[i] >= c.spans[i + 1]
               or c.spans[i + 1] > length(m.body_text)))

-- name: tokens
select coalesce(min(tokens), 0), coalesce(avg(tokens), 0)::float8, coalesce(max(tokens), 0),
       count(*)
  from chunks
 where list = %(list)s and month = %(month)s

-- name: chunk_keys
select key from chunks where list = %(list)s and month = %(month)s

-- name: rows_left
-- What a month still holds of what must stay out.
select (select count(*)
          from messages m
         where m.list = %(list)s and m.month = %(month)s
           and (sha256(convert_to('message ' || m.message_id, 'UTF8')) = any(%(messages)s)
                or sha256(convert_to('sender ' || lower(m.from_email), 'UTF8')) = any(%(senders)s)
                or exists (
                   select from unnest(m.refs || m.in_reply_to) as r (x)
                    where sha256(convert_to('message ' || r.x, 'UTF8')) = any(%(ids)s))))
     + (select count(*)
          from chunks c
         where c.list = %(list)s and c.month = %(month)s
           and (sha256(convert_to('message ' || c.message_id, 'UTF8')) = any(%(messages)s)
                or split_part(c.key, '#', 1) in (select key_prefix from removed_messages)))

-- name: threads_left
select (select count(*)
          from threads t
         where sha256(convert_to('message ' || t.message_id, 'UTF8')) = any(%(ids)s)
            or sha256(convert_to('message ' || t.thread_id, 'UTF8')) = any(%(ids)s)
            or sha256(convert_to('message ' || t.parent_id, 'UTF8')) = any(%(ids)s)
            or sha256(convert_to('message ' || t.root_id, 'UTF8')) = any(%(ids)s))
     + (select count(*)
          from thread_aliases a
         where sha256(convert_to('message ' || a.id, 'UTF8')) = any(%(ids)s)
            or sha256(convert_to('message ' || a.message_id, 'UTF8')) = any(%(ids)s))

-- name: key_prefixes
select key_prefix from removed_messages where list = %(list)s and month = %(month)s
