-- Loading one month of one list, and reading it. Used by tables/messages.py.

-- name: stage
-- JSON comes as text: what PostgreSQL refuses of it, it refuses of one row, not of all in COPY.
create temporary table messages_stage on commit drop as
select list, month, message_id, variant, content_hash, row_hash, ordinal, archive_offset,
       archive_length, sent_at, date_source, date_raw, subject, subject_base, from_name,
       from_email, reply_to, recipients, cc, in_reply_to, refs, list_id, body_kind, body_text,
       ''::text as segments, ''::text as attachments, identifiers, flags,
       ''::text as search_subject, ''::text as search_text
  from messages
 limit 0;
-- Nothing is compressed on its way through.
alter table messages_stage
      alter body_text set storage external,
      alter search_text set storage external,
      alter segments set storage external,
      alter attachments set storage external

-- name: copy
copy messages_stage (
       list, month, message_id, variant, content_hash, row_hash, ordinal, archive_offset,
       archive_length, sent_at, date_source, date_raw, subject, subject_base, from_name,
       from_email, reply_to, recipients, cc, in_reply_to, refs, list_id, body_kind, body_text,
       segments, attachments, identifiers, flags, search_subject, search_text)
from stdin

-- name: analyze_stage
-- Of the columns that are compared only: sampling the texts would take most of the time.
analyze messages_stage (list, month, message_id, variant, row_hash)

-- name: upsert
-- Of a range of the stage. Unchanged rows are left out first: ON CONFLICT would compute search for
-- each of them.
insert into messages
select s.list, s.month, s.message_id, s.variant, s.content_hash, s.row_hash, s.ordinal,
       s.archive_offset, s.archive_length, s.sent_at, s.date_source, s.date_raw, s.subject,
       s.subject_base, s.from_name, s.from_email, s.reply_to, s.recipients, s.cc,
       s.in_reply_to, s.refs, s.list_id, s.body_kind, s.body_text, s.segments::jsonb,
       s.attachments::jsonb, s.identifiers, s.flags,
       setweight(to_tsvector(%(language)s::regconfig, s.search_subject), 'A')
       || setweight(to_tsvector(%(language)s::regconfig, s.search_text), 'B')
       || array_to_tsvector(s.identifiers)
  from messages_stage s
 where s.ordinal between %(first)s and %(last)s
   and not exists (
       select from messages m
        where m.list = s.list and m.month = s.month and m.message_id = s.message_id
          and m.variant = s.variant and m.row_hash = s.row_hash)
 order by s.message_id, s.variant
on conflict (list, month, message_id, variant) do update
   set content_hash = excluded.content_hash, row_hash = excluded.row_hash,
       ordinal = excluded.ordinal, archive_offset = excluded.archive_offset,
       archive_length = excluded.archive_length, sent_at = excluded.sent_at,
       date_source = excluded.date_source, date_raw = excluded.date_raw,
       subject = excluded.subject, subject_base = excluded.subject_base,
       from_name = excluded.from_name, from_email = excluded.from_email,
       reply_to = excluded.reply_to, recipients = excluded.recipients, cc = excluded.cc,
       in_reply_to = excluded.in_reply_to, refs = excluded.refs, list_id = excluded.list_id,
       body_kind = excluded.body_kind, body_text = excluded.body_text,
       segments = excluded.segments, attachments = excluded.attachments,
       identifiers = excluded.identifiers, flags = excluded.flags, search = excluded.search

-- name: unstage
-- A row that PostgreSQL refuses; its former version vanishes with it.
delete from messages_stage where ordinal = %(ordinal)s
returning archive_offset, archive_length

-- name: staged_range
select min(ordinal), max(ordinal) from messages_stage

-- name: delete_vanished
delete from messages m
 where m.list = %(list)s and m.month = %(month)s
   and not exists (
       select from messages_stage s
        where s.message_id = m.message_id and s.variant = m.variant)

-- name: delete_quarantine
delete from quarantine where list = %(list)s and month = %(month)s

-- name: quarantine
insert into quarantine
       (list, month, ordinal, archive_offset, archive_length, reason, parser_version)
values (%(list)s, %(month)s, %(ordinal)s, %(archive_offset)s, %(archive_length)s, %(reason)s,
        %(parser_version)s)

-- name: for_chunks
select message_id, variant, content_hash, subject_base, body_text, segments
  from messages
 where list = %(list)s and month = %(month)s
 order by ordinal

-- name: sample
select sent_at::date as sent, from_name as sender, subject, length(body_text) as characters
  from messages
 where list = %(list)s and month = %(month)s
 order by ordinal
 limit 5

-- name: list
-- One row a message, for `mail-assets list`.
select m.message_id, m.month, m.subject, m.from_email, m.sent_at, m.in_reply_to, t.thread_id,
       m.archive_offset, m.archive_length, m.content_hash, m.flags
  from messages m
  left join threads t using (message_id)
 where m.list = %(list)s and (%(month)s::text is null or m.month = %(month)s)
 order by m.month, m.ordinal

-- name: show
select m.*, t.thread_id, t.parent_id, t.depth, t.position
  from messages m
  left join threads t using (message_id)
 where m.message_id = %(message_id)s
 order by m.list, m.month, m.variant
