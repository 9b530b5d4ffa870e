-- Loading a month and reading its texts. Used by tables/messages.py.
--
-- Statements that read a month write the list as `(select ...)`, which hides its name from the
-- planner. If a list is newer than the last ANALYZE, as in its first backfill, the planner expects no
-- rows for the name and would read the whole list.

-- name: settle
-- Whole corpus: moves the pending lists of the GIN indexes into the indexes, whichever month the
-- entries are from. Every search reads the pending list, up to 4 MB per index.
select gin_clean_pending_list(x.indexrelid)
  from pg_index x
  join pg_class c on c.oid = x.indexrelid
  join pg_am a on a.oid = c.relam
 where x.indrelid = 'messages'::regclass and a.amname = 'gin' and pg_has_role(c.relowner, 'usage')

-- name: stage
-- Rows to write, identified by their position in the archive. JSON and the tsvector are text here, so
-- that PostgreSQL refuses one row and not the whole COPY. Nothing is compressed, and a row that fits
-- stays in its 8 kB page: most rows have 5 kB. (Before PostgreSQL 16, `create table` cannot set the
-- storage of a column.) The table is created once per connection, which takes as long as loading ten
-- messages. Each transaction empties it.
do $$ begin
if to_regclass('pg_temp.messages_stage') is null then
    create temporary table messages_stage (
        ordinal         integer not null,
        variant         smallint not null,
        row_hash        bytea not null,
        message_id      text not null,
        content_hash    text not null,
        sent_at         timestamptz not null,
        date_source     text not null,
        date_raw        text not null,
        subject         text not null,
        subject_base    text not null,
        topic           text not null,
        is_answer       boolean not null,
        from_name       text not null,
        from_email      text not null,
        reply_to        text[] not null,
        recipients      text[] not null,
        cc              text[] not null,
        in_reply_to     text[] not null,
        refs            text[] not null,
        list_id         text not null,
        body_kind       text not null,
        attachments     text not null,
        body_text       text not null,
        flags           text[] not null,
        segments        text not null,
        identifiers     text[] not null,
        text_hash       bytea,
        outline         bytea,
        files_hash      bytea,
        arrived_at      timestamptz,
        arrival_source  text not null,
        search          text not null
    ) with (toast_tuple_target = 8160) on commit delete rows;
    alter table messages_stage
        alter column message_id     set storage external,
        alter column content_hash   set storage external,
        alter column subject        set storage external,
        alter column subject_base   set storage external,
        alter column recipients     set storage external,
        alter column cc             set storage external,
        alter column refs           set storage external,
        alter column attachments    set storage external,
        alter column body_text      set storage external,
        alter column segments       set storage external,
        alter column identifiers    set storage external,
        alter column search         set storage external;
end if;
end $$

-- name: copy
copy messages_stage from stdin

-- name: upsert
-- Writes a range of the staged rows.
insert into messages (
       list, month, message_id, variant, content_hash, row_hash, sent_at, date_source, date_raw,
       arrived_at, arrival_source, topic, is_answer, subject, subject_base, from_name, from_email,
       reply_to, recipients, cc, in_reply_to, refs, list_id, body_kind, body_text, segments,
       attachments, identifiers, flags, search, text_hash, outline, files_hash)
select %(list)s, %(month)s, s.message_id, s.variant, s.content_hash, s.row_hash, s.sent_at,
       s.date_source, s.date_raw, least(s.arrived_at, now()), s.arrival_source, s.topic,
       s.is_answer, s.subject, s.subject_base, s.from_name, s.from_email, s.reply_to, s.recipients,
       s.cc, s.in_reply_to, s.refs, s.list_id, s.body_kind, s.body_text, s.segments::jsonb,
       s.attachments::jsonb, s.identifiers, s.flags,
       s.search::tsvector, s.text_hash, s.outline, s.files_hash
  from messages_stage s
 where s.ordinal between %(first)s and %(last)s
 order by s.ordinal
on conflict (list, month, message_id, variant) do update
   set content_hash = excluded.content_hash, row_hash = excluded.row_hash,
       sent_at = excluded.sent_at, date_source = excluded.date_source,
       date_raw = excluded.date_raw, arrived_at = excluded.arrived_at,
       arrival_source = excluded.arrival_source, subject = excluded.subject,
       subject_base = excluded.subject_base, topic = excluded.topic,
       is_answer = excluded.is_answer, from_name = excluded.from_name,
       from_email = excluded.from_email, reply_to = excluded.reply_to,
       recipients = excluded.recipients, cc = excluded.cc, in_reply_to = excluded.in_reply_to,
       refs = excluded.refs, list_id = excluded.list_id, body_kind = excluded.body_kind,
       body_text = excluded.body_text, segments = excluded.segments,
       attachments = excluded.attachments, identifiers = excluded.identifiers,
       flags = excluded.flags, search = excluded.search, text_hash = excluded.text_hash,
       outline = excluded.outline, files_hash = excluded.files_hash
 -- when a month is loaded again, most rows are unchanged
 where messages.row_hash <> excluded.row_hash
    or (messages.checksum, message_checksum(messages), messages.search, messages.arrived_at)
       is distinct from
       (excluded.checksum, excluded.checksum, excluded.search, excluded.arrived_at)

-- name: delete
delete from messages
 where list = (select %(list)s) and month = %(month)s
   and (message_id, variant) in (
       select * from unnest(%(message_ids)s::text[], %(variants)s::smallint[]))

-- name: find_contested
select find_contested(%(message_ids)s)

-- name: known
-- Fields of existing rows that a load needs. Not joined with archive_entries: if the month is newer
-- than the last ANALYZE, the planner expects one row and would read all entries for each message.
select message_id, variant, row_hash, from_name, from_email, subject_base, content_hash, arrived_at,
       arrival_source
  from messages
 where list = (select %(list)s) and month = %(month)s

-- name: count_undated
select count(*) from messages
 where list = (select %(list)s) and month = %(month)s and date_source <> 'date'

-- name: mend_senders
-- Deletes senders of a month without a message, adds missing ones, and counts both.
with wanted as materialized (
    select distinct lower(from_email) as address,
           fold_name(from_name) || ' ' || lower(from_email) as person
      from messages
     where list = (select %(list)s) and month = %(month)s),
deleted as (
    delete from senders s
     where s.list = (select %(list)s) and s.month = %(month)s
       and not exists (
           select from wanted w where (w.address, w.person) = (s.address, s.person))
    returning 1),
added as (
    insert into senders (list, month, address, person)
    select %(list)s, %(month)s, address, person
      from wanted w
     where not exists (
           select from senders s
            where (s.list, s.month, s.address, s.person)
                  = (%(list)s, %(month)s, w.address, w.person))
    returning 1)
select (select count(*) from deleted) + (select count(*) from added)

-- name: read_quarantine
select ordinal, archive_offset, archive_length, reason, parser_version
  from quarantine
 where list = %(list)s and month = %(month)s
 order by ordinal

-- name: delete_quarantine
delete from quarantine where list = %(list)s and month = %(month)s

-- name: quarantine
insert into quarantine
       (list, month, ordinal, archive_offset, archive_length, reason, parser_version)
values (%(list)s, %(month)s, %(ordinal)s, %(archive_offset)s, %(archive_length)s, %(reason)s,
        %(parser_version)s)

-- name: for_chunks
-- Ordered by id: chunks must not depend on the position of a message in the archive.
select message_id, variant, content_hash, subject_base, body_text, segments
  from messages
 where list = (select %(list)s) and month = %(month)s
 order by message_id collate "C", variant
