-- Pages that list lists, months and threads; counts; descriptions of tables. Used by
-- reading/browsing.py.

-- name: months
-- Reads the counts of loads, not the messages.
select list, month, (counts->>'stored')::int as messages
  from partitions
 where asset = 'messages' and (counts->>'stored')::int > 0 and list = any((select shown_lists())::text[])
 order by list, month

-- name: newest_month
-- Reads the counts of loads, not the messages.
select max(month)
  from partitions
 where asset = 'messages' and (counts->>'stored')::int > 0 and list = any((select shown_lists())::text[])

-- name: newest_id
-- Reads the newest message of each list from the index messages_list_date.
select m.message_id
  from unnest((select shown_lists())) as l (name)
 cross join lateral (
       select message_id, sent_at
         from messages
        where list = l.name
        order by sent_at desc, message_id desc
        limit 1) m
 order by m.sent_at desc, m.message_id desc
 limit 1

-- name: newest_threads
-- Threads of the newest messages of some lists, newest first: id of the first node, author and
-- subject of the first message, numbers of messages and authors, lists, and the last date. `recent`:
-- messages read per list.
with recent as materialized (
    select r.message_id, r.sent_at
      from unnest(%(lists)s::text[]) as l (name)
     cross join lateral (
           select message_id, sent_at
             from shown_messages
            where list = l.name and sent_at <= now()
            order by sent_at desc, message_id desc
            limit %(recent)s) r
     order by r.sent_at desc
     limit %(recent)s),
newest as materialized (
    select (array_agg(r.message_id order by r.sent_at desc))[1] as message_id,
           max(r.sent_at) as last_sent_at
      from recent r
      join threads t using (message_id)
     group by t.thread_id
     order by last_sent_at desc
     limit %(most)s)
select min(first.message_id) as first_id,
       (array_agg(m.from_name order by t.position, m.arrived_at))[1] as from_name,
       (array_agg(m.from_email order by t.position, m.arrived_at))[1] as from_email,
       count(distinct m.message_id)::int as messages,
       count(distinct lower(m.from_email))::int as people,
       array_agg(distinct m.list) as lists,
       (array_agg(m.subject_base order by t.position, m.arrived_at))[1] as subject,
       n.last_sent_at
  from newest n
 cross join lateral shown_thread(n.message_id) t
 cross join lateral (
       select f.message_id from shown_thread(n.message_id) f order by f.position limit 1) first
 cross join lateral (
       select c.message_id, c.list, c.from_name, c.from_email, c.subject_base, c.arrived_at
         from shown_messages c
         left join shown_texts o using (message_id, list, month, variant)
        where c.message_id = t.message_id and coalesce(o.place, 1) = 1
       offset 0) m
 group by n.message_id, n.last_sent_at
 order by n.last_sent_at desc, n.message_id

-- name: has_attachments
-- Uses the partial index messages_attachments.
select exists (select from shown_messages where attachments <> '[]' and list = any(%(lists)s))

-- name: month_addresses
-- Addresses of pages: each message of a month, and the thread if it begins with this message. The
-- address of a thread is its first node, or the message if that node may not be shown.
select m.message_id, max(m.sent_at) as sent_at,
       (select case when is_closed(root.message_id) then m.message_id else root.message_id end
          from threads root
         where root.thread_id = t.thread_id and root.position = 0
           and not exists (
               select from threads n
                where n.thread_id = t.thread_id and n.position < t.position and not n.is_ghost
                  and exists (select from shown_messages e where e.message_id = n.message_id)))
           as thread
  from shown_messages m
  left join threads t using (message_id)
 where m.list = (select %(list)s) and m.month = %(month)s
 group by m.message_id, t.thread_id, t.position
 order by sent_at, m.message_id
offset %(first)s
 limit %(most)s

-- name: near_ids
-- Ids before and after an id that no archive has, in the order of the index. Reads four times as
-- many as are wanted, because some may not be shown.
select n.message_id
  from ((select distinct message_id
           from messages
          where message_id < %(id)s
          order by message_id desc
          limit 4 * %(near)s)
        union
        (select distinct message_id
           from messages
          where message_id >= %(id)s
          order by message_id
          limit 4 * %(near)s)
        offset 0) n
 where exists (select from shown_messages m where m.message_id = n.message_id offset 0)

-- name: known_ids
-- Ids of archived messages, except those that equal a sender's address: anybody can send a message
-- with another person's address as its Message-ID.
select m.message_id
  from shown_messages m
 where m.message_id = any(%(ids)s)
   and not exists (select from senders s where s.address = lower(m.message_id))

-- name: neighbours
-- Archived messages before and after a message, in the order of its thread.
select (select n.message_id
          from threads n
         where n.thread_id = t.thread_id and n.position < t.position and not n.is_ghost
           and exists (select from shown_messages m where m.message_id = n.message_id)
         order by n.position desc
         limit 1),
       (select n.message_id
          from threads n
         where n.thread_id = t.thread_id and n.position > t.position and not n.is_ghost
           and exists (select from shown_messages m where m.message_id = n.message_id)
         order by n.position
         limit 1)
  from threads t
 where t.message_id = %(message_id)s

-- name: list_neighbours
-- Messages before and after a message by date, in each of its lists. Uses messages_list_date.
with own as materialized (
    select distinct on (list) list, sent_at
      from shown_messages
     where message_id = %(message_id)s
     order by list, arrived_at, variant)
select o.list,
       (select n.message_id
          from messages n
         where n.list = o.list and (n.sent_at, n.message_id) < (o.sent_at, %(message_id)s)
         order by n.sent_at desc, n.message_id desc
         limit 1),
       (select n.message_id
          from messages n
         where n.list = o.list and (n.sent_at, n.message_id) > (o.sent_at, %(message_id)s)
         order by n.sent_at, n.message_id
         limit 1)
  from own o
 order by o.list

-- name: only_read
-- Makes the session read-only and limits the time of each statement.
select set_config('default_transaction_read_only', 'on', false),
       set_config('statement_timeout', %(timeout)s, false)

-- name: month
-- One page of a month, thread by thread: each row, as in its mailbox, so each text of a contested id.
-- Threads are in the order of their first message of the month. Only the text that arrived first is
-- in a thread. Each thread of the page is read once, because if a list is hidden, that takes a
-- millisecond. For `(select ...)` around the list see messages.sql.
with of_month as materialized (
    select message_id, variant, subject, from_name, from_email, sent_at
      from shown_messages
     where list = (select %(list)s) and month = %(month)s),
page as materialized (
    select m.*, c.place, t.thread_id, t.position, t.by_subject,
           coalesce(t.thread_id, m.message_id) as thread,
           min(m.sent_at) over (
               partition by coalesce(t.thread_id, m.message_id), coalesce(c.place, 1)) as began
      from of_month m
      left join shown_texts c
        on (c.message_id, c.list, c.month, c.variant)
           = (m.message_id, %(list)s, %(month)s, m.variant)
      left join threads t on t.message_id = m.message_id and coalesce(c.place, 1) = 1
     order by began, thread, coalesce(c.place, 1), t.position, m.message_id, m.variant
    offset %(first)s
     limit %(most)s),
nodes as materialized (
    select n.message_id, n.thread_id, n.depth
      from (select distinct on (thread_id) message_id from page where thread_id is not null) w
     cross join lateral shown_thread(w.message_id) n)
select p.message_id, p.subject, p.from_name, p.from_email, p.sent_at, p.place,
       case when coalesce(p.place, 1) = 1
            then coalesce(n.thread_id, p.message_id) end as thread_id,
       coalesce(n.depth, 0) as depth, coalesce(p.by_subject, false) as by_subject
  from page p
  left join nodes n on n.message_id = p.message_id and coalesce(p.place, 1) = 1
 order by p.began, p.thread, coalesce(p.place, 1), p.position, p.message_id, p.variant

-- name: list_stats
-- Sums the counts of months. If a month was last written to another index, its keys in this index
-- are counted instead.
select l.list,
       coalesce(a.months, 0)::int as months, coalesce(a.found, 0)::int as found,
       coalesce(m.messages, 0)::int as messages,
       coalesce(m.duplicates, 0)::int as duplicates,
       coalesce(q.quarantined, 0)::int as quarantined,
       coalesce(r.removed, 0)::int as removed,
       coalesce(w.words, 0)::int as words,
       coalesce(c.chunks, 0)::int as chunks,
       coalesce(v.vectors, 0)::int as vectors
  from unnest(%(lists)s::text[]) as l (list)
  left join (select list, count(*) as months, sum(found) as found
               from mbox_archives where object_key is not null group by list) a using (list)
  left join (select list, sum((counts->>'stored')::int) as messages,
                    sum((counts->>'duplicates')::int) as duplicates
               from partitions where asset = 'messages' group by list) m using (list)
  left join (select list, count(*) as quarantined from quarantine group by list) q using (list)
  left join (select list, count(*) as removed from left_out group by list) r using (list)
  left join (select list, sum((counts->>'chunks')::int) as chunks
               from partitions where asset = 'chunks' group by list) c using (list)
  left join (select list, sum(case
                    when right(inputs, length(%(words_name)s) + 1) = ' ' || %(words_name)s
                    then (counts->>'documents')::bigint
                    else (select count(*) from words w
                           where w.list = p.list and w.month = p.month
                             and w.index_name = %(words_name)s and w.written) end) as words
               from partitions p where asset = 'words' group by list) w using (list)
  left join (select list, sum(case
                    when right(inputs, length(%(vectors_name)s) + 1) = ' ' || %(vectors_name)s
                    then (counts->>'chunks')::bigint
                    else (select count(*) from vectors v
                           where v.list = p.list and v.month = p.month
                             and v.index_name = %(vectors_name)s and v.written) end) as vectors
               from partitions p where asset = 'vectors' group by list) v using (list)
 order by l.list

-- name: newest_dates
-- Date of the newest message of each list, by an index. Dates in the future are ignored as wrong.
select l.list, (select m.sent_at
                  from messages m
                 where m.list = l.list and m.sent_at <= now()
                 order by m.sent_at desc
                 limit 1)
  from unnest(%(lists)s::text[]) as l (list)
 where l.list = any((select shown_lists())::text[])

-- name: columns
select a.attname, format_type(a.atttypid, a.atttypmod), not a.attnotnull,
       col_description(a.attrelid, a.attnum)
  from pg_attribute a
 where a.attrelid = %(table)s::regclass and a.attnum > 0 and not a.attisdropped
 order by a.attnum

-- name: full_name
-- Full name of a table: database.schema.table.
select current_database() || '.' || n.nspname || '.' || c.relname
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where c.oid = %(table)s::regclass

-- name: rows_mbox_archives
select count(*) from mbox_archives

-- name: rows_recorded
-- Number of rows of a table, summed from the counts of its months. `figure` names the count: for
-- messages it is 'stored'.
select coalesce(sum((counts->>%(figure)s)::bigint), 0)::bigint
  from partitions
 where asset = %(table)s

-- name: list
-- One row per message. The lateral subquery avoids a join: see `known` in messages.sql. `is_left`,
-- here and below: all other variants in the archive were forgotten, so the flag `variant` is removed.
-- Each thread is read once, because if a list is hidden, that takes a millisecond.
with stored as materialized (
    select e.message_id, e.month, e.ordinal, m.subject, m.from_email, m.sent_at,
           shown_ids(m.in_reply_to) as in_reply_to, t.thread_id,
           e.archive_offset, e.archive_length, e.content_hash,
           case when v.is_left then array_remove(m.flags, 'variant') else m.flags end as flags,
           c.place is not null as contested
      from archive_entries e
     cross join lateral (
           select subject, from_email, sent_at, in_reply_to, flags
             from shown_messages
            where (list, month, message_id, variant) = (e.list, e.month, e.message_id, e.variant)
            limit 1) m
     cross join lateral (
           select e.variant > 0 and not exists (
                  select from shown_messages
                   where (list, month, message_id) = (e.list, e.month, e.message_id)
                     and variant <> e.variant) as is_left) v
      left join shown_texts c using (message_id, list, month, variant)
      left join threads t on t.message_id = e.message_id and coalesce(c.place, 1) = 1
     where e.list = %(list)s and (%(month)s::text is null or e.month = %(month)s)
       and e.outcome = 'stored'),
shown as materialized (
    select thread_id, shown_thread_id(thread_id) as id
      from (select distinct thread_id from stored where thread_id is not null) t)
select s.message_id, s.month, s.subject, s.from_email, s.sent_at, s.in_reply_to, t.id as thread_id,
       s.archive_offset, s.archive_length, s.content_hash, s.flags, s.contested
  from stored s
  left join shown t using (thread_id)
 order by case %(sort)s::text when 'oldest' then s.sent_at end,
          case %(sort)s::text when 'newest' then s.sent_at end desc,
          s.month, s.ordinal

-- name: show
-- All texts of an id, the first to arrive first. Only that text is in the thread. `text`: number of
-- the text; null unless the id is contested.
select m.*, e.archive_offset, e.archive_length, t.thread_id, t.parent_id, t.depth, t.position,
       case when v.is_left then array_remove(m.flags, 'variant') else m.flags end as flags,
       t.by_subject, c.place as text, shown_ids(m.in_reply_to) as in_reply_to,
       shown_ids(m.refs) as refs,
       array(select unnest(m.refs || m.in_reply_to)
             except select unnest(shown_ids(m.refs || m.in_reply_to))) as closed_ids
  from shown_messages m
  join archive_entries e using (list, month, message_id, variant)
 cross join lateral (
       select m.variant > 0 and not exists (
              select from shown_messages o
               where (o.list, o.month, o.message_id) = (m.list, m.month, m.message_id)
                 and o.variant <> m.variant) as is_left) v
  left join shown_texts c using (message_id, list, month, variant)
  left join lateral shown_node(m.message_id) t on coalesce(c.place, 1) = 1
 where m.message_id = %(message_id)s and e.outcome = 'stored'
 order by coalesce(c.place, 1), m.arrived_at, break_tie(m.list, m.month, m.variant) collate "C"

-- name: around
-- Spans of some chunks in their messages, each with some context. A compressed body is unpacked once
-- per chunk, not once per span.
select c.key,
       array(
           select substr(b.body, greatest(c.spans[i] - %(context)s, 0) + 1,
                         c.spans[i + 1] - greatest(c.spans[i] - %(context)s, 0) + %(context)s)
             from generate_series(1, cardinality(c.spans), 2) as i
            order by i)
  from chunks c
  join shown_messages m using (list, month, message_id, variant)
 cross join lateral (select m.body_text || '' as body offset 0) b
 where c.key = any(%(keys)s)
