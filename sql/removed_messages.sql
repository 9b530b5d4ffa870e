-- The messages that months leave out, and deleting what is there of them. Used by
-- tables/removed_messages.py.

-- name: find_copies
select list, month, message_id, variant, m.content_hash, e.ordinal, m.from_name, m.from_email
  from messages m
  join archive_entries e using (list, month, message_id, variant)
 where e.outcome = 'stored'
   and (message_id = any(%(message_ids)s) or lower(m.from_email) = any(%(senders)s)
        or exists (select from unnest(%(senders)s::text[]) as s (address)
                    where strpos(lower(m.from_name), s.address) > 0))
 order by list, month, e.ordinal

-- name: delete_messages
delete from messages m
 using unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
              %(variants)s::smallint[]) as d (list, month, message_id, variant)
 where (m.list, m.month, m.message_id, m.variant) = (d.list, d.month, d.message_id, d.variant)

-- name: clear_entries
-- Nothing is known any more of the bytes of such mail and of its duplicates.
update archive_entries e
   set outcome = case e.outcome when 'stored' then 'removed' else e.outcome end,
       message_id = null, variant = null, content_hash = null, outline = null, ending = null
  from unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
              %(variants)s::smallint[]) as d (list, month, message_id, variant)
 where (e.list, e.month, e.message_id, e.variant) = (d.list, d.month, d.message_id, d.variant)

-- name: delete_chunks
delete from chunks
 where split_part(key, '#', 1) = any(%(key_prefixes)s) and message_id = any(%(message_ids)s)

-- name: record
insert into removed_messages (list, month, ordinal, removal, message_digest, key_prefix)
values (%(list)s, %(month)s, %(ordinal)s, %(removal)s, %(message_digest)s, %(key_prefix)s)
on conflict do nothing

-- name: clear
delete from removed_messages where list = %(list)s and month = %(month)s

-- name: update_counts
-- The figures of a month are those of what it holds now. It is no longer what it was made from,
-- nor is what was made from it: else nothing would be done where the message is taken back. The
-- inputs keep their first word, an archive, and their last, an encoder.
update partitions p
   set inputs = case when p.asset in ('chunks', 'embeddings') then 'less ' else '' end || p.inputs,
       digest = case when p.asset in ('messages', 'chunks')
                     then encode(sha256(convert_to('less ' || p.digest, 'UTF8')), 'hex')
                     else p.digest end,
       counts = p.counts || case p.asset
       when 'messages' then jsonb_build_object(
           'stored', (select count(*) from messages m where (m.list, m.month) = (p.list, p.month)),
           'removed', (select count(*) from removed_messages r
                        where (r.list, r.month) = (p.list, p.month)))
       when 'embeddings' then jsonb_build_object(
           'texts', (select count(distinct c.text_hash) from chunks c
                      where (c.list, c.month) = (p.list, p.month)))
       when 'words' then jsonb_build_object(
           'documents', (select count(*) from messages m
                          where (m.list, m.month) = (p.list, p.month)))
       else jsonb_build_object(
           'chunks', (select count(*) from chunks c where (c.list, c.month) = (p.list, p.month)))
       end
 where p.list = %(list)s and p.month = %(month)s
   and p.asset in ('messages', 'words', 'chunks', 'embeddings', 'vectors')

-- name: months
-- The months that something was removed from.
select distinct list, month from left_out order by list, month

-- name: unwanted_keys
-- Keys of forgotten messages that some index still has, or may have.
select v.index_name, array_agg(v.key order by v.key)
  from vectors v
  join (select distinct list, month, key_prefix from left_out) r
    on v.list = r.list and v.month = r.month and split_part(v.key, '#', 1) = r.key_prefix
 where %(list)s::text is null or (v.list = %(list)s and v.month = %(month)s)
 group by v.index_name
 order by v.index_name

-- name: unwanted_months
select distinct v.list, v.month
  from vectors v
  join (select distinct list, month, key_prefix from left_out) r
    on v.list = r.list and v.month = r.month and split_part(v.key, '#', 1) = r.key_prefix
 order by v.list, v.month

-- name: unwanted_documents
-- As unwanted_keys, of the word indexes: a document has one key.
select w.index_name, array_agg(w.key order by w.key)
  from words w
  join (select distinct list, month, key_prefix from left_out) r
    on w.list = r.list and w.month = r.month and w.key = r.key_prefix
 where %(list)s::text is null or (w.list = %(list)s and w.month = %(month)s)
 group by w.index_name
 order by w.index_name

-- name: analyze
-- The planner's statistics hold common values of columns: addresses, subjects, ids.
analyze messages, senders, archive_entries, threads, thread_aliases, chunks

-- name: text_hashes
select distinct text_hash from chunks where list = %(list)s and month = %(month)s
