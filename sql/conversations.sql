-- Threads as conversations. Used by reading/conversations.py.

-- name: count
-- Reads the counts of the last build.
select (counts->>'threads')::int from partitions where asset = 'threads' and list is null

-- name: resolve
-- Thread of an id, or the thread that its alias leads to, and the position there.
select thread_id, position from shown_node(%(id)s)
union all
select t.thread_id, t.position
  from thread_aliases a
 cross join lateral shown_node(a.message_id) t
 where a.id = %(id)s

-- name: conversation
-- Nodes of a thread in order, from a position on: the copy of each message that arrived first, and
-- all lists and months of that text. `most` limits the nodes, `characters` each text; null means no
-- limit. A message that was deleted after the last build is returned as a ghost. offset 0: each text
-- is unpacked once, and only for these nodes.
select t.position, t.depth, t.message_id, t.is_ghost or m.message_id is null as is_ghost,
       t.parent_id, t.parent_message_id, t.by_subject,
       coalesce(places.archives, '{}') as archives,
       m.from_name, m.from_email, m.sent_at, m.subject, m.subject_base,
       m.part as body_text,
       case when char_length(m.part) < %(characters)s then char_length(m.part)
            else char_length(m.body_text) end as characters,
       m.segments, m.attachments, coalesce(places.contested, false) as contested,
       m.flags
  from (select t.*
          from shown_thread(%(thread_id)s) t
         where t.position >= %(first)s
         order by t.position
         limit %(most)s) t
  left join lateral (
       select array_agg(distinct c.list || '|' || c.month)
              filter (where coalesce(o.place, 1) = 1) as archives,
              bool_or(o.place is not null) as contested
         from shown_messages c
         left join shown_texts o using (message_id, list, month, variant)
        where c.message_id = t.message_id) places on true
  left join lateral (
       select f.*, coalesce(left(f.body_text, %(characters)s), f.body_text) as part
         from first_shown(t.message_id) f
       offset 0) m on true
 order by t.position

-- name: extent
-- Size of a thread, its authors and dates, without reading texts. offset 0: each node is looked up
-- in the index; a join would read all messages.
select max(t.position) + 1 as positions,
       count(distinct m.message_id) filter (where not t.is_ghost) as messages,
       count(distinct lower(m.from_email)) as people,
       array_remove(array_agg(distinct m.list), null) as lists,
       min(m.sent_at) as first_sent_at, max(m.sent_at) as last_sent_at,
       coalesce((array_agg(m.subject_base order by t.position, m.arrived_at)
                 filter (where m.message_id is not null))[1], '') as subject_base
  from shown_thread(%(thread_id)s) t
  left join lateral (
       select c.message_id, c.list, c.from_email, c.sent_at, c.subject_base, c.arrived_at
         from shown_messages c
         left join shown_texts o using (message_id, list, month, variant)
        where c.message_id = t.message_id and coalesce(o.place, 1) = 1
       offset 0) m on true

-- name: page_starts
-- First node of each page of `size` positions.
select distinct on (position / %(size)s) message_id
  from shown_thread(%(thread_id)s)
 order by position / %(size)s, position

-- name: state
-- Digest of everything that a page of a thread shows: nodes, copies, summary, links of commits. Row
-- hashes are used in place of texts.
select encode(sha256(convert_to(
           coalesce((select row(s.checksum, s.made_at)::text
                       from shown_summaries s
                      where s.thread_id = %(thread_id)s), '')
           || coalesce((select p.digest from partitions p
                         where p.asset = 'commit_links' and p.list is null), '')
           || string_agg(row(t, c.copies)::text, e'\n' order by t.position), 'UTF8')), 'hex')
  from shown_thread(%(thread_id)s) t
  left join lateral (
       select string_agg(
                  row(m.list, m.month, m.variant, m.row_hash, m.checksum, m.arrived_at,
                      o.place)::text,
                  ',' order by m.list, m.month, m.variant) as copies
         from shown_messages m
         left join shown_texts o using (message_id, list, month, variant)
        where m.message_id = t.message_id) c on true

-- name: outline
-- Nodes around a message in order, its answers, and the first message of the thread, each with its
-- number among the messages. Answers have the beginning of their text.
with nodes as materialized (
    select t.*, count(*) filter (where not t.is_ghost) over (order by t.position) as number,
           count(*) filter (where not t.is_ghost) over () as messages
      from shown_thread(%(message_id)s) t)
select n.position, n.depth, n.message_id, n.is_ghost or m.message_id is null as is_ghost,
       n.parent_id is not distinct from %(message_id)s as answers, n.by_subject,
       n.number::int, n.messages::int,
       m.from_name, m.from_email, m.sent_at, m.subject_base,
       case when n.parent_id = %(message_id)s then left(m.body_text, %(characters)s) end
           as body_text,
       case when n.parent_id = %(message_id)s then m.segments end as segments
  from nodes n
  join nodes own on own.message_id = %(message_id)s
  left join lateral first_shown(n.message_id) m on true
 where n.position between own.position - %(above)s and own.position + %(below)s
    or n.parent_id = %(message_id)s
    or n.number = 1 and not n.is_ghost
 order by n.position

-- name: places
-- Number of each message in its thread, from 1, and the number of messages there. Each thread is read
-- once per id: if lists are hidden, shown_node would read it again.
select i.id, n.number, n.messages
  from unnest(%(ids)s::text[]) as i (id)
 cross join lateral (
       select count(*) filter (where t.position <= t.own)::int as number, count(*)::int as messages
         from (select is_ghost, position,
                      max(position) filter (where message_id = i.id) over () as own
                 from shown_thread(i.id)) t
        where not t.is_ghost and t.own is not null
       having count(*) > 0) n
