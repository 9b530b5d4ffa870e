-- Forgotten messages: those that months leave out, their remaining rows, and people whom other mail
-- names. Used by tables/removed_messages.py. messages.sql explains how messages are looked up.

-- name: find_copies
-- Whole corpus: if senders are given, because names may contain addresses; ids are looked up.
with found as materialized (
    select list, month, message_id, variant, content_hash, from_name, from_email
      from messages
     where message_id = any(%(message_ids)s)
    union
    select list, month, message_id, variant, content_hash, from_name, from_email
      from messages
     where lower(from_email) = any(%(senders)s)
    union
    select m.*
      from unnest(%(senders)s::text[]) as s (address)
     cross join lateral (
           select list, month, message_id, variant, content_hash, from_name, from_email
             from messages
            where strpos(lower(from_name), s.address) > 0
           offset 0) m)
select f.list, f.month, f.message_id, f.variant, f.content_hash, e.ordinal, f.from_name,
       f.from_email
  from found f
 cross join lateral (
       select ordinal
         from archive_entries
        where (list, month, message_id, variant) = (f.list, f.month, f.message_id, f.variant)
          and outcome = 'stored'
        limit 1) e
 order by f.list, f.month, e.ordinal

-- name: delete_messages
delete from messages m
 using unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
              %(variants)s::smallint[]) as d (list, month, message_id, variant)
 where (m.list, m.month, m.message_id, m.variant) = (d.list, d.month, d.message_id, d.variant)

-- name: clear_entries
-- Marks entries of such mail as removed, and clears ids and hashes of content, also in duplicates. Each
-- month is read once, not once per message.
with months as materialized (
    select distinct list, month
      from unnest(%(lists)s::text[], %(months)s::text[]) as d (list, month)),
entries as materialized (
    select e.list, e.month, e.ordinal, e.message_id, e.variant
      from months m
     cross join lateral (
           select *
             from archive_entries
            where list = m.list and month = m.month
              and message_id = any(%(message_ids)s)
           offset 0) e)
update archive_entries e
   set outcome = case e.outcome when 'stored' then 'removed' else e.outcome end,
       message_id = null, variant = null, content_hash = null, outline = null, ending = null,
       checksum = 0  -- a trigger replaces this
  from entries o
  join unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
              %(variants)s::smallint[]) as d (list, month, message_id, variant)
    on (o.list, o.month, o.message_id, o.variant) = (d.list, d.month, d.message_id, d.variant)
 where (e.list, e.month, e.ordinal) = (o.list, o.month, o.ordinal)

-- name: delete_chunks
delete from chunks
 where split_part(key, '#', 1) = any(%(key_prefixes)s) and message_id = any(%(message_ids)s)

-- name: delete_patches
delete from patches p
 using unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
              %(variants)s::smallint[]) as d (list, month, message_id, variant)
 where (p.list, p.month, p.message_id, p.variant) = (d.list, d.month, d.message_id, d.variant)

-- name: record
insert into removed_messages (list, month, ordinal, removal, message_digest, key_prefix)
values (%(list)s, %(month)s, %(ordinal)s, %(removal)s, %(message_digest)s, %(key_prefix)s)
on conflict do nothing

-- name: hold_again
-- Messages that the archive has are not cut out of it.
delete from cut_messages
 where list = %(list)s and month = %(month)s and key_prefix = any(%(key_prefixes)s)

-- name: keep_gone
-- Mail of forgotten senders that the archive no longer has: only these rows have its ids.
insert into cut_messages (list, month, key_prefix, removal, message_digest)
select r.list, r.month, r.key_prefix, r.removal, r.message_digest
  from removed_messages r
  join removals on removals.digest = r.removal
 where r.list = %(list)s and r.month = %(month)s
   and removals.kind = 'sender'
   and r.message_digest is not null
   and r.key_prefix <> all(%(key_prefixes)s)
on conflict do nothing

-- name: clear
delete from removed_messages where list = %(list)s and month = %(month)s

-- name: update_counts
-- Updates counts and digests of a month. New digests of messages, chunks and patches make the next
-- runs notice when the message is allowed back. Later assets have lost the message too: their inputs
-- get the new digests, unless they were outdated already. Messages are loaded again, because footers
-- are learnt from the endings of the whole month.
with changed as (
    select asset, digest as before, encode(sha256(case asset
           when 'messages' then (
               select coalesce(string_agg(row_hash, ''::bytea order by row_hash), '')
                 from messages
                where list = (select %(list)s) and month = %(month)s)
           when 'patches' then (
               select coalesce(string_agg(
                          int8send(hash_record_extended(o, 0)), ''::bytea
                          order by message_id collate "C", variant, place), '')
                 from patches o
                where list = %(list)s and month = %(month)s)
           else (
               select coalesce(convert_to(string_agg(
                          key || ' ' || encode(text_hash, 'hex') || ' ['
                          || array_to_string(spans, ', ') || e']\n', ''
                          order by message_id collate "C", variant, index), 'UTF8'), '')
                 from chunks
                where list = %(list)s and month = %(month)s) end), 'hex') as after
      from partitions
     where list = %(list)s and month = %(month)s and asset in ('messages', 'chunks', 'patches'))
update partitions p
   set inputs = case when p.asset = 'messages' then p.inputs || %(less)s
                else coalesce((
                    select replace(p.inputs, before, after)
                      from changed
                     where before = split_part(p.inputs, ' ', 1)
                     limit 1), p.inputs) end,
       digest = coalesce((select after from changed where asset = p.asset), p.digest),
       counts = p.counts || case p.asset
       when 'messages' then jsonb_build_object(
           'stored', (select count(*) from messages m where (m.list, m.month) = (p.list, p.month)),
           'removed', (select count(*) from removed_messages r
                        where (r.list, r.month) = (p.list, p.month)))
       when 'embeddings' then jsonb_build_object(
           'texts', (select count(distinct c.text_hash) from chunks c
                      where (c.list, c.month) = (p.list, p.month)))
       when 'patches' then jsonb_build_object(
           'rows', (select count(*) from patches o where (o.list, o.month) = (p.list, p.month)))
       when 'words' then jsonb_build_object(
           'documents', (select count(*) from messages m
                          where (m.list, m.month) = (p.list, p.month)))
       else jsonb_build_object(
           'chunks', (select count(*) from chunks c where (c.list, c.month) = (p.list, p.month)))
       end
 where p.list = %(list)s and p.month = %(month)s
   and p.asset in ('messages', 'words', 'patches', 'chunks', 'embeddings', 'vectors')

-- name: months
-- Months that leave mail out.
select distinct list, month from left_out order by list, month

-- name: unwanted_keys
-- Keys of forgotten messages that an index may still have.
select v.index_name, array_agg(v.key order by v.key)
  from (select distinct list, month, key_prefix
          from left_out
         where %(list)s::text is null or (list = %(list)s and month = %(month)s)) r
  join vectors v
    on v.list = r.list and v.month = r.month and split_part(v.key, '#', 1) = r.key_prefix
 group by v.index_name
 order by v.index_name

-- name: stale_keys
-- Keys of a month that belong to no chunk and that an index may still have.
select v.index_name, array_agg(v.key order by v.key)
  from vectors v
 where v.list = %(list)s and v.month = %(month)s
   and not exists (select from chunks c where c.key = v.key)
 group by v.index_name
 order by v.index_name

-- name: stale_months
-- Whole corpus: mail may have vanished from any month since an index was filled last.
select distinct v.list, v.month
  from vectors v
 where not exists (select from chunks c where c.key = v.key)
 order by v.list, v.month

-- name: unwanted_documents
-- Like unwanted_keys, for word indexes, where a message has one key.
select w.index_name, array_agg(w.key order by w.key)
  from (select distinct list, month, key_prefix
          from left_out
         where %(list)s::text is null or (list = %(list)s and month = %(month)s)) r
  join words w
    on w.list = r.list and w.month = r.month and w.key = r.key_prefix
 group by w.index_name
 order by w.index_name

-- name: stale_documents
-- Like stale_keys, for word indexes, without forgotten mail.
select w.index_name, array_agg(w.key order by w.key)
  from words w
 where w.list = %(list)s and w.month = %(month)s
   and w.key not in (select key_prefix from left_out where list = %(list)s and month = %(month)s)
   and w.key not in (
       select message_key(m.list, m.month, m.message_id, m.variant, m.content_hash)
         from messages m
        where m.list = (select %(list)s) and m.month = %(month)s)
 group by w.index_name
 order by w.index_name

-- name: stale_word_months
-- Months of a word index that were not written from their present messages: it may have more.
-- Whole corpus: as stale_months.
select distinct w.list, w.month
  from (select distinct index_name, list, month from words) w
  left join partitions m on (m.asset, m.list, m.month) = ('messages', w.list, w.month)
  left join partitions p on (p.asset, p.list, p.month) = ('words', w.list, w.month)
 where p.inputs is distinct from m.digest || ' ' || w.index_name
 order by w.list, w.month

-- name: analyze
-- The planner's statistics contain common values of columns, such as addresses, subjects and ids.
analyze messages, senders, archive_entries, threads, thread_aliases, thread_summaries, chunks,
        patches

-- name: text_hashes
select distinct text_hash from chunks where list = %(list)s and month = %(month)s

-- name: person_entries
-- Entries that may name one of some addresses (in lower case); some do not.
-- Whole corpus: somebody is forgotten, and no index has all receivers of a message.
select distinct e.entry
  from messages m
 cross join unnest(m.reply_to || m.recipients || m.cc) as e (entry)
 where exists (select from unnest(%(addresses)s::text[]) as a (address)
                where strpos(lower(e.entry), a.address) > 0)

-- name: replace_people
-- Whole corpus: as person_entries.
update messages m
   set row_hash = m.row_hash,  -- fires the trigger that sets the checksum
       reply_to = array(
           select case when e.entry = any(%(entries)s::text[]) then %(nobody)s else e.entry end
             from unnest(m.reply_to) with ordinality as e (entry, place) order by e.place),
       recipients = array(
           select case when e.entry = any(%(entries)s::text[]) then %(nobody)s else e.entry end
             from unnest(m.recipients) with ordinality as e (entry, place) order by e.place),
       cc = array(
           select case when e.entry = any(%(entries)s::text[]) then %(nobody)s else e.entry end
             from unnest(m.cc) with ordinality as e (entry, place) order by e.place)
 where m.reply_to && %(entries)s::text[] or m.recipients && %(entries)s::text[]
    or m.cc && %(entries)s::text[]

-- name: count_mentioned
-- Other messages with an address in their subject or text, where it stays.
-- Whole corpus: shown to a person before a sender is forgotten; every body is read.
select count(*)
  from messages m
 where exists (select from unnest(%(addresses)s::text[]) as a (address)
                where strpos(lower(m.subject), a.address) > 0
                   or strpos(lower(m.body_text), a.address) > 0)
   and not exists (
       select from unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
                          %(variants)s::smallint[]) as d (list, month, message_id, variant)
        where (m.list, m.month, m.message_id, m.variant)
              = (d.list, d.month, d.message_id, d.variant))

-- name: count_named
-- Other messages that have some entries in their address columns.
-- Whole corpus: as person_entries.
select count(*)
  from messages m
 where (m.reply_to && %(entries)s::text[] or m.recipients && %(entries)s::text[]
        or m.cc && %(entries)s::text[])
   and not exists (
       select from unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
                          %(variants)s::smallint[]) as d (list, month, message_id, variant)
        where (m.list, m.month, m.message_id, m.variant)
              = (d.list, d.month, d.message_id, d.variant))

-- name: left_messages
select message_id, from_name, from_email, refs || in_reply_to, reply_to || recipients || cc
  from messages
 where list = (select %(list)s) and month = %(month)s

-- name: left_chunks
-- One row per message with chunks: whether it was removed.
select c.message_id,
       bool_or(split_part(c.key, '#', 1) in (
           select key_prefix from left_out where list = %(list)s and month = %(month)s))
  from chunks c
 where c.list = %(list)s and c.month = %(month)s
 group by c.message_id

-- name: left_patches
select message_id, author_name, author_email,
       array(select link ->> 1 from jsonb_array_elements(links) as l (link))
  from patches
 where list = (select %(list)s) and month = %(month)s

-- name: left_threads
-- All nodes of the threads of the month's messages.
select t.message_id, t.thread_id, t.parent_id, t.parent_message_id, t.root_id
  from threads t
 where t.thread_id in (
       select o.thread_id
         from messages m
         join threads o using (message_id)
        where m.list = (select %(list)s) and m.month = %(month)s)

-- name: left_aliases
select a.id
  from thread_aliases a
 where a.message_id in (
       select message_id from messages where list = (select %(list)s) and month = %(month)s)

-- name: left_key_prefixes
select key_prefix from left_out where list = %(list)s and month = %(month)s

-- name: all_ids
-- All ids in rows, except archive_entries, whose ids are in messages.
-- Whole corpus: removals are digests, and each id is digested to compare.
select message_id from messages
union
select unnest(refs || in_reply_to) from messages
union
select message_id from threads
union
select message_id from thread_changes
union
select id from thread_aliases
union
select message_id from thread_aliases
union
select message_id from removed_upstream
union
select link ->> 1 from patches cross join jsonb_array_elements(links) as l (link)

-- name: all_authors
-- Whole corpus: as all_ids.
select from_name, from_email from messages
union
select author_name, author_email from patches

-- name: all_entries
-- Whole corpus: as all_ids.
select distinct e.entry
  from messages m
 cross join unnest(m.reply_to || m.recipients || m.cc) as e (entry)

-- name: held
-- Ids that a stored message has.
select distinct message_id from messages where message_id = any(%(message_ids)s)

-- name: lock_threads
-- Lock of the step that builds threads, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('threads', 0))

-- name: replace_ids
-- Replaces ids in other mail with placeholders.
update messages m
   set row_hash = m.row_hash,  -- fires the trigger that sets the checksum
       refs = array(
           select coalesce(h.placeholder, r.x)
             from unnest(m.refs) with ordinality as r (x, place)
             left join unnest(%(message_ids)s::text[], %(placeholders)s::text[])
                       as h (message_id, placeholder) on h.message_id = r.x
            order by r.place),
       in_reply_to = array(
           select coalesce(h.placeholder, r.x)
             from unnest(m.in_reply_to) with ordinality as r (x, place)
             left join unnest(%(message_ids)s::text[], %(placeholders)s::text[])
                       as h (message_id, placeholder) on h.message_id = r.x
            order by r.place)
 where (m.refs || m.in_reply_to) && %(message_ids)s::text[]

-- name: note_changed_threads
-- Queues the threads of forgotten messages to be built without their ids.
insert into thread_changes
select o.message_id
  from threads t
  join threads o using (thread_id)
 where t.message_id = any(%(message_ids)s) and o.message_id <> all(%(message_ids)s)
union
select message_id
  from thread_aliases
 where id = any(%(message_ids)s) and message_id <> all(%(message_ids)s)

-- name: add_aliases
-- A link to a forgotten message still leads to its thread: to the first other message.
insert into thread_aliases (id, message_id, named)
select distinct on (h.placeholder) h.placeholder, o.message_id, false
  from unnest(%(message_ids)s::text[], %(placeholders)s::text[]) as h (message_id, placeholder)
  join threads t on t.message_id = h.message_id
  join threads o on o.thread_id = t.thread_id and not o.is_ghost
 where o.message_id <> all(%(message_ids)s)
 order by h.placeholder, o.position
on conflict (id) do nothing

-- name: redirect_aliases
-- Aliases of a forgotten message lead to the first other message of the thread.
update thread_aliases a
   set message_id = (
       select o.message_id
         from threads t
         join threads o on o.thread_id = t.thread_id and not o.is_ghost
        where t.message_id = a.message_id and o.message_id <> all(%(message_ids)s)
        order by o.position
        limit 1)
 where a.message_id = any(%(message_ids)s)
   and exists (
       select from threads t
         join threads o on o.thread_id = t.thread_id and not o.is_ghost
        where t.message_id = a.message_id and o.message_id <> all(%(message_ids)s))

-- name: delete_aliases
delete from thread_aliases where id = any(%(message_ids)s) or message_id = any(%(message_ids)s)

-- name: delete_changes
delete from thread_changes c
 where c.message_id = any(%(message_ids)s)
   and not exists (select from messages m where m.message_id = c.message_id)
