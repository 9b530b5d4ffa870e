-- Vectors that searches have encoded, vectors of each encoder's fixed text, and the encoders in use.
-- Used by tables/encoded_texts.py.

-- name: read
select text_hash, vector
  from encoded_texts
 where fingerprint = %(fingerprint)s and text_hash = any(%(hashes)s)

-- name: chunks
-- First chunks of some messages, and chunks by key, each with its vector or the text to encode.
-- offset 0: chunks are read by message id alone. With list and month too, the planner would read the
-- index entries of the whole month for each message.
with wanted as materialized (
    select w.place, w.list, w.month, w.message_id, w.variant::smallint as variant,
           w.first::int as first
      from rows from (json_array_elements_text(%(wanted_lists)s),
                      json_array_elements_text(%(wanted_months)s),
                      json_array_elements_text(%(wanted_message_ids)s),
                      json_array_elements_text(%(wanted_variants)s),
                      json_array_elements_text(%(wanted_firsts)s))
           with ordinality as w (list, month, message_id, variant, first, place))
select w.place, c.key, c.text_hash, e.vector, m.subject_base,
       case when e.vector is null then c.text end
  from wanted w
  join lateral (
       select key, list, month, variant, index, text_hash, text
         from chunks
        where message_id = w.message_id
       offset 0) c
    on (c.list, c.month, c.variant) = (w.list, w.month, w.variant)
   and (c.index < w.first or c.key = any(array(select json_array_elements_text(%(wanted_keys)s))))
  left join encoded_texts e on (e.fingerprint, e.text_hash) = (%(fingerprint)s, c.text_hash)
  left join lateral (
       select subject_base
         from messages
        where e.vector is null
          and (list, month, message_id, variant) = (w.list, w.month, w.message_id, w.variant)
        limit 1) m on true
 order by w.place, c.index

-- name: keep
-- Keeps only texts that are in a chunk. `skip locked` skips chunks that `forget` is deleting, so that a
-- search does not wait for it. A `forget` that starts later waits for this statement, then sweeps.
insert into encoded_texts (fingerprint, text_hash, vector)
select %(fingerprint)s, n.text_hash, n.vector
  from unnest(%(hashes)s::bytea[], %(vectors)s::bytea[]) as n (text_hash, vector)
 cross join lateral (
       select from chunks c where c.text_hash = n.text_hash limit 1 for key share skip locked) still
 order by n.text_hash
on conflict do nothing

-- name: bound
-- Deletes the oldest rows beyond `most`, except those that `forget` is sweeping.
delete from encoded_texts
 where number in (
       select number
         from encoded_texts
        where number <= (select max(number) from encoded_texts) - %(most)s
          for update skip locked)

-- name: sweep
-- Deletes the vectors of texts that are in no chunk.
-- Whole corpus: mail is forgotten; the cache is bounded and may hold its text.
delete from encoded_texts e
 where not exists (select from chunks c where c.text_hash = e.text_hash)

-- name: drop
delete from encoded_texts where fingerprint = %(fingerprint)s

-- name: record_probe
insert into encoder_probes (fingerprint, vector, machine)
values (%(fingerprint)s, %(vector)s, %(machine)s)
on conflict do nothing

-- name: read_probe
select vector, machine from encoder_probes where fingerprint = %(fingerprint)s

-- name: used_fingerprints
-- Encoders of all indexes that are not retired.
select distinct fingerprint from indexes

-- name: chunk_times
-- Time of the last change of each month's chunks.
select list, month, updated_at from partitions where asset = 'chunks'
