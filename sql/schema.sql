-- The schema of the mail database: tables, indexes, functions, triggers and views, with a comment
-- on each table and column. Applied once to an empty schema, in one transaction, by
-- postgres/statements.py, which records it in schema_migrations. Later changes are numbered
-- migrations (sql/001_NAME.sql, 002_...): this file is not edited after a release.
--
--   lists          lists, and what may be shown of them: views shown_messages, shown_texts,
--                  shown_summaries
--   archives       mbox_archives, former_archives, removed_upstream
--   messages       messages, contested_texts, archive_entries, quarantine, senders
--   threads        threads, thread_aliases, thread_changes
--   repositories   commits, commit_links, commit_link_months, commit_link_sources,
--                  commit_link_changes
--   summaries      thread_summaries, summary_changes, view thread_contents
--   chunks         chunks
--   patches        patches, patch_series, patch_states, patch_outcomes, patch_keys,
--                  patch_changes
--   indexes        vectors, words, indexes, live_indexes, promotions
--   encoders       encoder_probes, encoded_texts
--   progress       partitions, month_checks
--   forgetting     removals, removed_messages, cut_messages, view left_out, forget_keys
--   searches       served_searches, search_audit
--
-- Every row of a partitioned asset has (list, month). Only the run of a partition writes its rows.


-- Migrations ------------------------------------------------------------------------------------

create table schema_migrations (
    number      integer primary key,
    name        text not null,
    sha256      text not null,
    applied_at  timestamptz not null default now()
);

comment on table schema_migrations is
    'Files that were applied to this database: sql/schema.sql and migrations (sql/NNN_NAME.sql).';
comment on column schema_migrations.number is 'Number of the migration; 0 for the schema.';
comment on column schema_migrations.name is 'Name of the migration.';
comment on column schema_migrations.sha256 is 'SHA-256 of its file.';
comment on column schema_migrations.applied_at is 'When it was applied.';


-- Texts that are searched by substring -----------------------------------------------------------

-- pg_trgm finds a substring of a sender, subject, receiver or file name without reading every
-- message. It is a trusted extension: the owner of a database may create it. Without it, the results
-- are the same, but the tables are read.
do $$
begin
    if exists (select from pg_available_extensions where name = 'pg_trgm') then
        create extension if not exists pg_trgm;
    end if;
exception when insufficient_privilege then
    raise notice 'pg_trgm cannot be created: a part of a sender is found by reading all messages';
end $$;

create function like_pattern(part text) returns text
    language sql immutable strict parallel safe
    return '%' || replace(replace(replace(lower(part), '\', '\\'), '%', '\%'), '_', '\_') || '%';
comment on function like_pattern(text) is
    'The LIKE pattern of texts in lower case that contain this one, in any case.';

create function fold_name(name text) returns text
    language sql immutable strict parallel safe
    return translate(
        normalize(
            regexp_replace(
                normalize(lower(normalize(name, nfkc)), nfd), '[\u0300-\u036f\u064b-\u065f]', '', 'g'),
            nfc),
        'øđłæœıðþ‘’ʼ', 'odlaoidt''''''');
comment on function fold_name(text) is
    'A name in lower case, without accents, wide letters or typographic apostrophes. Apply it to '
    'both sides of a comparison.';

-- The next two are in plpgsql: with plan_cache_mode = force_custom_plan, which searches use,
-- PostgreSQL 18 plans an SQL function again in each call.

create function join_receivers(recipients text[], cc text[]) returns text
language plpgsql immutable strict parallel safe as $$
begin
    return lower(array_to_string(recipients || cc, e'\n'));
end $$;
comment on function join_receivers(text[], text[]) is
    'All receivers of a message as one text in lower case, for an index.';

create function join_file_names(attachments jsonb) returns text
language plpgsql immutable strict parallel safe as $$
declare
    names text[] := '{}';
begin
    for place in 0 .. jsonb_array_length(attachments) - 1 loop
        names := names || (attachments -> place ->> 'name');
    end loop;
    return lower(array_to_string(names, e'\n'));
end $$;
comment on function join_file_names(jsonb) is
    'The names of the attached files of a message as one text in lower case, for an index.';


-- The name of a function is the word before the first parenthesis in the head of a hunk, else the name
-- after class, struct, enum and the like.
create function list_changed_names(files jsonb) returns text
language sql immutable strict parallel safe as $$
    with functions as (
        select coalesce(substring(h.head from '([[:alpha:]_][[:alnum:]_.:~]*)[[:blank:]]*\('),
                        substring(h.head from
                                  '\y(?:class|struct|enum|union|trait|impl|interface|module)'
                                  '[[:blank:]]+([[:alnum:]_.:]+)')) as name
          from jsonb_array_elements(files) as f (file)
         cross join jsonb_array_elements_text(coalesce(f.file -> 'functions', '[]')) as h (head)),
    named as (
        select name || '()' as name from functions
        union select regexp_replace(name, '^.*[.:]', '') || '()' from functions),
    paths as (
        select f.file ->> 'path' as name from jsonb_array_elements(files) as f (file)
        union select f.file ->> 'old_path' from jsonb_array_elements(files) as f (file))
    select e'\n'
           || (select coalesce(string_agg(lower(name), e'\n' order by name collate "C"), '')
                 from paths
                where name <> '')
           || e'\n\n'
           || (select coalesce(string_agg(lower(name), e'\n' order by name collate "C"), '')
                 from named
                where name not in ('()', 'if()', 'for()', 'while()', 'switch()', 'return()',
                                   'function()'))
           || e'\n'
$$;
comment on function list_changed_names(jsonb) is
    'The files of a commit, an empty line, and the functions that git names in the heads of hunks, '
    'each with (). One per line, in lower case.';

create function changes_file(changed_names text, part text, hidden text) returns boolean
language plpgsql immutable parallel safe as $$
declare
    paths text := split_part(changed_names, e'\n\n', 1);
begin
    if paths not like like_pattern(part) then
        return false;
    end if;
    return hidden is null or paths !~ hidden
        or exists (
            select from regexp_split_to_table(paths, e'\n') as p (path)
             where path like like_pattern(part) and path !~ hidden);
end $$;
comment on function changes_file(text, text, text) is
    'True if a path among changed names contains a text. Paths that match the pattern `hidden` do '
    'not count; null hides nothing.';


-- Lists -----------------------------------------------------------------------------------------

create table lists (
    list           text primary key,
    language       text,
    published      boolean not null default false,
    was_published  boolean not null default false
);

comment on table lists is
    'Mailing lists that have mail or are in lists.toml, as the last command read that file. Servers '
    'read the file; the SQL functions read only this table.';
comment on column lists.list is 'Name of the mailing list.';
comment on column lists.language is
    'Text search configuration of the list; null if it was never in lists.toml.';
comment on column lists.published is
    'True if lists.toml names the list, without published = false: its mail may be shown.';
comment on column lists.was_published is
    'True if the list was published once: links to its mail then return 410, not 404.';

-- The only rule for what may be shown. A session that shows mail sets the variable mail_assets.lists
-- (tables/lists.py) to the names of the published lists, or to * for all stored lists. If it is not
-- set, nothing is shown. Functions that a page calls for each message keep their plans
-- (force_generic_plan), because searches plan each statement for its values, and planning these
-- functions takes ten times as long as running them.
create function shown_lists() returns text[]
language sql stable parallel safe
begin atomic
    select case current_setting('mail_assets.lists', true)
           when '*' then array(select list from lists)
           else string_to_array(current_setting('mail_assets.lists', true), ',') end;
end;
comment on function shown_lists() is 'The lists that this session may show.';

create function hides_lists(shown text[] default shown_lists()) returns boolean
language sql stable parallel safe
begin atomic
    select exists (select from lists where list <> all(coalesce(shown, '{}')));
end;
comment on function hides_lists(text[]) is 'True if there are lists that may not be shown.';


-- Archives --------------------------------------------------------------------------------------

create table mbox_archives (
    list            text not null,
    month           text not null check (month ~ '^\d{4}-\d\d$'),
    source          text not null,
    object_key      text,
    sha256          text not null default '',
    bytes           bigint not null default 0,
    version         text not null default '',
    found           integer not null default 0,
    content_sha256  text not null default '',
    fetched_at      timestamptz not null default now(),
    dialect         text not null default '',
    found_dialect   text not null default '',
    list_id         text not null default '',
    checksum        bigint not null default 0,
    primary key (list, month)
);

comment on table mbox_archives is
    'One row per list and month: the archive as it was fetched from the source. The file is in '
    'the archive store.';
comment on column mbox_archives.list is 'Name of the mailing list.';
comment on column mbox_archives.month is 'Month of the archive, YYYY-MM.';
comment on column mbox_archives.source is 'Where the archive was fetched from.';
comment on column mbox_archives.object_key is
    'Key of the file in the archive store; null if the source has no archive for this month.';
comment on column mbox_archives.sha256 is
    'SHA-256 of the file as fetched, in hexadecimal; empty if there is none.';
comment on column mbox_archives.bytes is 'Size of the file as fetched, in bytes.';
comment on column mbox_archives.version is
    'Version of the file as the source reported it: an ETag, a date, or size and modification '
    'time.';
comment on column mbox_archives.found is 'Number of messages in the archive.';
comment on column mbox_archives.content_sha256 is
    'SHA-256 over the messages without their From_ lines: equal means that nothing has changed.';
comment on column mbox_archives.fetched_at is 'When the row was last written.';
comment on column mbox_archives.dialect is
    'Dialect that the archive is read in: that of lists.toml, else found_dialect.';
comment on column mbox_archives.found_dialect is 'Dialect that the bytes of the archive show.';
comment on column mbox_archives.list_id is
    'List-Id of most of its messages; empty if most name none.';
comment on column mbox_archives.checksum is
    'Checksum of the other columns. A statement that changes a row must set it, to any value; the '
    'trigger computes it.';

create function archive_checksum(a mbox_archives) returns bigint
    language sql stable parallel safe
    return hash_record_extended(row(
        a.list, a.month, a.source, a.object_key, a.sha256, a.bytes, a.version, a.found,
        a.content_sha256, a.fetched_at, a.dialect, a.found_dialect, a.list_id), 0);
comment on function archive_checksum(mbox_archives) is 'The checksum that a row should have.';

create function set_archive_checksum() returns trigger language plpgsql as $$
begin
    new.checksum := archive_checksum(new);
    return new;
end $$;
comment on function set_archive_checksum() is 'Sets the checksum of an archive that is written.';

create trigger mbox_archives_checksum before insert or update of checksum on mbox_archives
for each row execute function set_archive_checksum();

create table former_archives (
    object_key  text primary key,
    list        text not null,
    month       text not null,
    kept_until  timestamptz not null
);
create index former_archives_kept_until on former_archives (kept_until);

comment on table former_archives is
    'Files of archives that others have replaced, kept for MAIL_KEEP_ARCHIVES days.';
comment on column former_archives.object_key is 'Key in the archive store.';
comment on column former_archives.list is 'Name of the mailing list.';
comment on column former_archives.month is 'Month of the archive, YYYY-MM.';
comment on column former_archives.kept_until is 'When the file may be deleted.';

create table removed_upstream (
    list        text not null,
    month       text not null,
    digest      text not null,
    message_id  text not null,
    former_key  text not null,
    noticed_at  timestamptz not null default now(),
    primary key (list, month, digest)
);
create index removed_upstream_message_id on removed_upstream (message_id);

comment on table removed_upstream is
    'Messages that the archive of a month once had and no longer has.';
comment on column removed_upstream.list is 'Name of the mailing list.';
comment on column removed_upstream.month is 'Month of the archive, YYYY-MM.';
comment on column removed_upstream.digest is
    'SHA-256 of the Message-ID; of sender, date and subject where there is none.';
comment on column removed_upstream.message_id is 'Message-ID; empty if the message has none.';
comment on column removed_upstream.former_key is
    'Key, in the archive store, of the former archive that has the message.';
comment on column removed_upstream.noticed_at is 'When the loss was noticed.';


-- Messages --------------------------------------------------------------------------------------

create function count_new_text(segments jsonb) returns integer
language sql immutable strict parallel safe as $$
    select coalesce(sum((s.part ->> 1)::integer - (s.part ->> 0)::integer), 0)::integer
      from jsonb_array_elements(segments) as s (part)
     where s.part ->> 2 = 'text'
$$;
comment on function count_new_text(jsonb) is
    'Number of characters of a body that are new text of its author, from its segments.';

-- `search` is not a generated column: that would be computed for unchanged rows too, and could not use
-- the language of the list.
create table messages (
    list             text not null,
    month            text not null,
    message_id       text not null,
    variant          smallint not null,
    content_hash     text not null,
    row_hash         bytea not null,
    sent_at          timestamptz not null,
    date_source      text not null,
    date_raw         text not null,
    subject          text not null,
    subject_base     text not null,
    from_name        text not null,
    from_email       text not null,
    reply_to         text[] not null,
    recipients       text[] not null,
    cc               text[] not null,
    in_reply_to      text[] not null,
    refs             text[] not null,
    list_id          text not null,
    body_kind        text not null,
    body_text        text not null,
    segments         jsonb not null,
    attachments      jsonb not null,
    identifiers      text[] not null,
    flags            text[] not null,
    search           tsvector not null,
    arrived_at       timestamptz not null default now(),
    arrival_source   text not null default 'loaded'
        check (arrival_source in ('received', 'from_line', 'loaded')),
    topic            text not null default '',
    is_answer        boolean not null default false,
    text_hash        bytea,
    outline          bytea,
    files_hash       bytea,
    checksum         bigint not null,
    new_text_length  integer not null
        generated always as (count_new_text(segments)) stored,
    primary key (list, month, message_id, variant)
);
create index messages_message_id on messages (message_id);
create index messages_sent_at on messages (sent_at);
create index messages_from_email on messages (lower(from_email));
create index messages_search on messages using gin (search);
create index messages_attachments on messages (sent_at) where attachments <> '[]';
create index messages_references on messages using gin ((refs || in_reply_to));
create index messages_list_date on messages (list, sent_at, message_id);
create index messages_topic on messages (list, topic, sent_at) where topic <> '';

comment on table messages is
    'One row per message, list and month, as parsed from the archive. A message posted to three '
    'lists has three rows.';
comment on column messages.list is 'Name of the mailing list.';
comment on column messages.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column messages.message_id is
    'Message-ID without angle brackets; generated if the message has none.';
comment on column messages.variant is
    '0 for the first content with this Message-ID in the archive; 1, 2, ... for other contents with '
    'the same Message-ID.';
comment on column messages.content_hash is
    'SHA-256 of the content, in hexadecimal: equal in copies of one message.';
comment on column messages.row_hash is
    'SHA-256 over everything that the row was made from: the bytes of the message, the versions of '
    'the code, the variant and the learnt ending. If it is equal, the row is not written again.';
comment on column messages.sent_at is
    'When the message was sent: from its Date field, repaired where needed.';
comment on column messages.date_source is
    'Where sent_at comes from: date, received, from_line or archive_month.';
comment on column messages.date_raw is 'The Date field as written.';
comment on column messages.arrived_at is
    'Latest time by which the message had reached the archive, from fields that its sender cannot '
    'write.';
comment on column messages.arrival_source is
    'Where arrived_at comes from: received (the topmost Received field), from_line, or loaded (when '
    'this text was first stored).';
comment on column messages.subject is 'Decoded subject.';
comment on column messages.subject_base is 'Subject without list tags and reply prefixes.';
comment on column messages.topic is
    'Folded subject, by which answers without a known parent join a thread; empty if it is too '
    'general, such as "help" or "your mail".';
comment on column messages.is_answer is
    'True if the subject begins like an answer (Re:, Aw:), or if the message quotes another and has '
    'no patch, because archives of pipermail have lost the Re:.';
comment on column messages.from_name is 'Display name of the author.';
comment on column messages.from_email is 'Address of the author.';
comment on column messages.reply_to is 'Reply-To addresses, as "Name <address>".';
comment on column messages.recipients is 'To addresses, as "Name <address>".';
comment on column messages.cc is 'Cc addresses, as "Name <address>".';
comment on column messages.in_reply_to is 'Message-IDs from the In-Reply-To field.';
comment on column messages.refs is 'Message-IDs from the References field, oldest first.';
comment on column messages.list_id is 'List-Id in lower case; empty if the message names no list.';
comment on column messages.body_kind is
    'Part that body_text was read from: plain, enriched, html, calendar or none.';
comment on column messages.body_text is
    'Body as plain text, quotes and signatures included; the texts of attached messages follow, '
    'each after its author, date and subject. Spans and citations count its characters.';
comment on column messages.segments is
    'Parts of body_text without gaps: [[start, end, kind], ...] in characters; kind is text, '
    'quote, attribution, signature, footer or patch.';
comment on column messages.attachments is
    'Attached files in the order of the message: position (from 1), name, type, size, sha256 of '
    'the decoded content, is_patch. The bytes are in the archive: `mail-assets show '
    '--attachment`.';
comment on column messages.identifiers is
    'Names of files, functions, parameters, hosts and error codes, and versions, in the new text and '
    'patches, as lexemes of search (text/identifiers.py).';
comment on column messages.flags is
    'Repairs and oddities of the message, such as generated_id, date_repaired or truncated.';
comment on column messages.search is
    'Full-text vector: stems of the subject (weight A), of the new text and signatures (B), of '
    'parts of names (C), words and names as written, stop words (=the) and parts of addresses '
    '(@jo), in the language of the list. Learnt footers and signatures are included.';
comment on column messages.checksum is
    'Checksum of the other columns, set with row_hash. If it is wrong, something other than a load '
    'has changed the row.';
comment on column messages.text_hash is
    'Digest of Date, subject and text, without what lists and archives add; null if the archive has '
    'lost letters.';
comment on column messages.outline is
    'Like text_hash, with ? for letters outside of ASCII; null if the archive has no text.';
comment on column messages.files_hash is
    'Digest of the attached files; null if the archive keeps none.';
comment on column messages.new_text_length is
    'Characters of the new text: the body without quotes, attributions, signature, footer and '
    'patches.';
-- Compression does not make a tsvector smaller.
alter table messages alter search set storage external;

-- Only the length of the tsvector is hashed: reading it takes longer than all other columns.
-- hash_record_extended is stable across versions of PostgreSQL, because hash partitioning uses it.
create function message_checksum(m messages) returns bigint
    language sql stable parallel safe
    return hash_record_extended(row(
        m.list, m.month, m.message_id, m.variant, m.content_hash, m.row_hash, m.sent_at,
        m.date_source, m.date_raw, m.subject, m.subject_base, m.from_name, m.from_email, m.reply_to,
        m.recipients, m.cc, m.in_reply_to, m.refs, m.list_id, m.body_kind, m.body_text, m.segments,
        m.attachments, m.identifiers, m.flags, m.arrival_source,
        case m.arrival_source when 'loaded' then null else m.arrived_at end,
        m.topic, m.is_answer, m.text_hash, m.outline, m.files_hash, length(m.search)), 0);
comment on function message_checksum(messages) is 'The checksum that a row should have.';

-- Computes the same as message_checksum, which would take three times as long here.
create function set_message_checksum() returns trigger language plpgsql as $$
begin
    new.checksum := hash_record_extended(row(
        new.list, new.month, new.message_id, new.variant, new.content_hash, new.row_hash,
        new.sent_at, new.date_source, new.date_raw, new.subject, new.subject_base, new.from_name,
        new.from_email, new.reply_to, new.recipients, new.cc, new.in_reply_to, new.refs,
        new.list_id, new.body_kind, new.body_text, new.segments, new.attachments, new.identifiers,
        new.flags, new.arrival_source,
        case new.arrival_source when 'loaded' then null else new.arrived_at end,
        new.topic, new.is_answer, new.text_hash, new.outline, new.files_hash,
        length(new.search)), 0);
    return new;
end $$;
comment on function set_message_checksum() is 'Sets the checksum of a message that is written.';

-- A statement that changes a row must set row_hash too, even to its old value.
create trigger messages_checksum before insert or update of row_hash on messages
for each row execute function set_message_checksum();

create function message_key(
    list text, month text, message_id text, variant smallint, content_hash text) returns text
    language sql stable parallel safe
    return left(encode(sha256(convert_to(
               list || '|' || month || '|' || message_id
               || case when variant > 0 then ' ' || content_hash else '' end, 'UTF8')), 'hex'), 32);
comment on function message_key(text, text, text, smallint, text) is
    'Key of a message in a word index. The keys of its chunks are this key, # and a number.';

-- Which of several copies counts for an id, if no list was named: the copy that arrived first. In the
-- same second, a digest of the list's name decides, and within a list the position in the archive. The
-- sender controls none of these. choose_copies in mail/threads.py is the same rule in Python.
-- All parts are immutable, so that the function is inlined: a call takes 40 us. to_char is not.
create function break_tie(list text, month text, variant smallint) returns text
    language sql immutable strict parallel safe
    return md5(list) || month || lpad(variant::text, 5, '0');
comment on function break_tie(text, text, smallint) is
    'Order of copies that arrived in the same second.';

create function first_copy(id text) returns setof messages
language sql stable parallel safe
begin atomic
    select m.*
      from messages m
     where m.message_id = id
     order by m.arrived_at, break_tie(m.list, m.month, m.variant) collate "C"
     limit 1;
end;
comment on function first_copy(text) is
    'The copy of a message that arrived first, which counts for the id if no list was named.';

create table contested_texts (
    message_id  text not null,
    list        text not null,
    month       text not null,
    variant     smallint not null,
    place       integer not null,
    primary key (message_id, list, month, variant)
);

comment on table contested_texts is
    'Copies of contested messages. Anybody can send another text under the id of a message; if that '
    'has happened, each copy of the id has a row.';
comment on column contested_texts.message_id is 'Message-ID that several texts claim.';
comment on column contested_texts.list is 'Name of the mailing list that carries the copy.';
comment on column contested_texts.month is 'Month of its archive, YYYY-MM.';
comment on column contested_texts.variant is 'Variant, as in messages.';
comment on column contested_texts.place is
    'Number of the text, equal in its copies: 1 for the text that arrived first.';

-- No statistics, as for thread_changes.
alter table contested_texts alter message_id set statistics 0;

-- Two copies differ if one of these is known for both and is different: text, outline, attached files,
-- author. A copy with all four known belongs to the first copy with the same four. Any other copy
-- belongs to the first of the earliest 100 copies from which it does not differ. enable_seqscan is off
-- because PostgreSQL 18 keeps the plan of a function, possibly from a time without mail.
create function find_contested(ids text[]) returns void
language sql volatile set enable_seqscan = off
begin atomic
    -- until the transaction ends: two months that load at the same time do not see each other
    select pg_advisory_xact_lock(hashtextextended('contested_texts', 0)) where cardinality(ids) > 0;
    with copies as materialized (
        select m.message_id, m.list, m.month, m.variant, m.text_hash, m.outline, m.files_hash,
               case when not m.flags @> '{author_uncertain}' then lower(m.from_email) end as author,
               row_number() over (
                   partition by m.message_id
                   order by m.arrived_at, break_tie(m.list, m.month, m.variant) collate "C") as rank
          from (select distinct unnest(ids) as id) wanted
         cross join lateral (select * from messages where message_id = wanted.id offset 0) m),
    contested as (
        select message_id
          from copies
         group by message_id
        having count(*) > 1
           and greatest(count(distinct text_hash), count(distinct outline),
                        count(distinct files_hash), count(distinct author)) > 1),
    founded as (
        select c.*, min(rank) over same as founder,
               num_nulls(text_hash, outline, files_hash, author) > 0 or rank <= 100 as is_compared,
               array_agg(text_hash) filter (where rank <= 100) over of_id as hashes,
               array_agg(outline) filter (where rank <= 100) over of_id as outlines,
               array_agg(files_hash) filter (where rank <= 100) over of_id as files,
               array_agg(author) filter (where rank <= 100) over of_id as authors,
               array_agg(rank) filter (where rank <= 100) over of_id as ranks
          from copies c
          join contested using (message_id)
        window of_id as (partition by message_id),
               same as (partition by message_id, text_hash, outline, files_hash, author)),
    joined as (
        select message_id, list, month, variant,
               case when not is_compared then founder else (
                    select min(f.rank)
                      from unnest(hashes, outlines, files, authors, ranks)
                           as f (text_hash, outline, files_hash, author, rank)
                     where f.rank <= c.rank
                       and coalesce(f.text_hash = c.text_hash, true)
                       and coalesce(f.outline = c.outline, true)
                       and coalesce(f.files_hash = c.files_hash, true)
                       and coalesce(f.author = c.author, true)) end as joins, founder
          from founded c),
    found as materialized (
        select message_id, list, month, variant,
               dense_rank() over (
                   partition by message_id order by coalesce(joins, founder))::integer as place
          from joined),
    gone as (
        delete from contested_texts t
         where t.message_id = any(ids)
           and not exists (
               select from found f
                where (f.message_id, f.list, f.month, f.variant)
                      = (t.message_id, t.list, t.month, t.variant)))
    insert into contested_texts
    select * from found
    on conflict (message_id, list, month, variant) do update set place = excluded.place
     where contested_texts.place <> excluded.place;
end;
comment on function find_contested(text[]) is
    'Computes contested_texts for some ids. A load calls it last.';

create function settle_contested() returns trigger language plpgsql as $$
begin
    perform find_contested(array(
        select distinct t.message_id from unchanged u join contested_texts t using (message_id)));
    return null;
end $$;
comment on function settle_contested() is
    'Computes contested_texts again for ids that lost a copy.';

create trigger contested_deleted after delete on messages
referencing old table as unchanged
for each statement execute function settle_contested();

-- Messages that may be shown --------------------------------------------------------------------

-- Statements for readers use these views instead of messages and contested_texts. Rights and
-- row-level security of the reader apply, as in thread_contents.

create view shown_messages with (security_invoker = true) as
select * from messages where list = any((select shown_lists())::text[]);

comment on view shown_messages is 'The messages of lists that this session may show.';

create view shown_texts with (security_invoker = true) as
select c.message_id, c.list, c.month, c.variant,
       (select count(distinct o.place)
          from contested_texts o
         where o.message_id = c.message_id and o.list = any((select shown_lists())::text[])
           and o.place <= c.place)::integer as place
  from contested_texts c
 where c.list = any((select shown_lists())::text[])
   and exists (
       select from contested_texts o
        where o.message_id = c.message_id and o.list = any((select shown_lists())::text[])
          and o.place <> c.place);

comment on view shown_texts is
    'contested_texts as if there were only the lists that this session may show.';

create function first_shown(id text) returns setof messages
language sql stable parallel safe
begin atomic
    select m.*
      from messages m
     where m.message_id = id and m.list = any((select shown_lists())::text[])
     order by m.arrived_at, break_tie(m.list, m.month, m.variant) collate "C"
     limit 1;
end;
comment on function first_shown(text) is
    'The copy of a message that arrived first, of those that this session may show.';

create function is_closed(id text, shown text[] default shown_lists()) returns boolean
language sql stable parallel safe
begin atomic
    select exists (select from messages where message_id = id)
       and not exists (
           select from messages where message_id = id and list = any(shown));
end;
comment on function is_closed(text, text[]) is
    'True if a message is stored, and only in lists that may not be shown.';

create function shown_ids(ids text[], shown text[] default shown_lists()) returns text[]
language plpgsql stable parallel safe set plan_cache_mode = force_generic_plan as $$
begin
    return case when hides_lists(shown) then array(
        select i.id from unnest(ids) with ordinality as i (id, place)
         where not is_closed(i.id, shown) order by i.place) else ids end;
end $$;
comment on function shown_ids(text[], text[]) is
    'Message-IDs that a message refers to, without those of closed messages.';


create function note_lists() returns trigger language plpgsql as $$
begin
    insert into lists (list)
    select distinct list from changed except select list from lists
    on conflict (list) do nothing;
    return null;
end $$;
comment on function note_lists() is
    'Adds lists that have mail to the table lists. A load has added its list before.';

create trigger lists_inserted after insert on messages
referencing new table as changed
for each statement execute function note_lists();


create table archive_entries (
    list            text not null,
    month           text not null,
    ordinal         integer not null,
    archive_offset  bigint not null,
    archive_length  bigint not null,
    digest          bytea not null,
    outcome         text not null
        check (outcome in ('stored', 'duplicate', 'quarantined', 'removed')),
    message_id      text,
    variant         smallint,
    content_hash    text,
    outline         bytea,
    ending          bytea,
    checksum        bigint not null default 0,
    primary key (list, month, ordinal)
);
create unique index archive_entries_stored on archive_entries (list, month, message_id, variant)
 where outcome = 'stored';

comment on table archive_entries is
    'One row per message found in an archive: the position of its bytes, and its outcome. '
    'Positions are in the file that messages were last read from.';
comment on column archive_entries.list is 'Name of the mailing list.';
comment on column archive_entries.month is 'Month of the archive, YYYY-MM.';
comment on column archive_entries.ordinal is 'Position in the archive, from 0.';
comment on column archive_entries.archive_offset is
    'First byte of the message in the uncompressed archive.';
comment on column archive_entries.archive_length is
    'Length of the message in the uncompressed archive, in bytes.';
comment on column archive_entries.digest is
    'BLAKE2b digest of the bytes of the message, with the From_ line only if the date came from it. '
    'Bytes with a known digest are not parsed again.';
comment on column archive_entries.outcome is
    'stored (in messages), duplicate (of the message named), quarantined or removed.';
comment on column archive_entries.message_id is
    'Message-ID, for a duplicate that of the original; null if quarantined or removed.';
comment on column archive_entries.variant is
    'Variant of the message, for a duplicate that of the original; null if quarantined or removed.';
comment on column archive_entries.content_hash is
    'SHA-256 of its content, in hexadecimal; null if quarantined or removed.';
comment on column archive_entries.outline is
    'Digest of its content without the letters that pipermail may have lost; null in other '
    'dialects.';
comment on column archive_entries.ending is
    'Day of the message and hashes of its last lines. Footers and signatures of the month are '
    'learnt from these.';
comment on column archive_entries.checksum is
    'Checksum of the other columns, set as in mbox_archives.';

create function entry_checksum(e archive_entries) returns bigint
    language sql stable parallel safe
    return hash_record_extended(row(
        e.list, e.month, e.ordinal, e.archive_offset, e.archive_length, e.digest, e.outcome,
        e.message_id, e.variant, e.content_hash, e.outline, e.ending), 0);
comment on function entry_checksum(archive_entries) is 'The checksum that a row should have.';

create function set_entry_checksum() returns trigger language plpgsql as $$
begin
    new.checksum := entry_checksum(new);
    return new;
end $$;
comment on function set_entry_checksum() is 'Sets the checksum of an entry that is written.';

create trigger archive_entries_checksum before insert or update of checksum on archive_entries
for each row execute function set_entry_checksum();

create table quarantine (
    list            text not null,
    month           text not null,
    ordinal         integer not null,
    archive_offset  bigint not null,
    archive_length  bigint not null,
    reason          text not null,
    parser_version  text not null,
    primary key (list, month, ordinal)
);

comment on table quarantine is
    'Messages that could not be parsed. Their bytes stay in the archive.';
comment on column quarantine.list is 'Name of the mailing list.';
comment on column quarantine.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column quarantine.ordinal is 'Position in the archive, from 0.';
comment on column quarantine.archive_offset is
    'First byte of the message in the uncompressed archive.';
comment on column quarantine.archive_length is
    'Length of the message in the uncompressed archive, in bytes.';
comment on column quarantine.reason is 'Why the message could not be parsed.';
comment on column quarantine.parser_version is 'Version of the parser that gave up.';

create table senders (
    list     text not null,
    month    text not null,
    address  text not null,
    person   text not null
);
create index senders_address on senders (address);
create index senders_month on senders (list, month, person);

comment on table senders is
    'Senders of each month of each list, to find them by a part of the name or address.';
comment on column senders.list is 'Name of the mailing list.';
comment on column senders.month is 'Month of the archive, YYYY-MM.';
comment on column senders.address is 'Address in From, in lower case.';
comment on column senders.person is 'Folded name (fold_name), and address in lower case.';

-- Indexes that need pg_trgm.
do $$
begin
    if exists (select from pg_extension where extname = 'pg_trgm') then
        create index messages_subject on messages using gin (lower(subject) gin_trgm_ops);
        create index messages_receivers on messages
            using gin (join_receivers(recipients, cc) gin_trgm_ops);
        create index messages_file_names on messages
            using gin (join_file_names(attachments) gin_trgm_ops) where attachments <> '[]';
        create index senders_person on senders using gin (person gin_trgm_ops);
    end if;
end $$;

-- Triggers maintain senders, so that no writer of messages can omit it, and a deleted sender is gone
-- in the same transaction.
--
-- These functions and note_thread_updates compare sets with `except`, which reads each set once. The
-- statement of a trigger is planned for a few rows, and the session keeps that plan for any number of
-- rows. `offset 0` makes the plan read only the months in question.

create function note_senders() returns trigger language plpgsql as $$
begin
    -- an upsert fires the triggers of updates where it updates nothing
    if not exists (select from changed) then
        return null;
    end if;
    insert into senders (list, month, address, person)
    select list, month, lower(from_email), fold_name(from_name) || ' ' || lower(from_email)
      from (select distinct list, month, from_name, from_email from changed) a
    except
    select s.list, s.month, s.address, s.person
      from (select distinct list, month from changed) c
     cross join lateral (
           select list, month, address, person from senders
            where (list, month) = (c.list, c.month)
           offset 0) s;
    return null;
end $$;
comment on function note_senders() is 'Adds the authors of messages to senders.';

create function forget_senders() returns trigger language plpgsql as $$
begin
    if not exists (select from unchanged) then
        return null;
    end if;
    delete from senders s
     using (select list, month, lower(from_email) as address,
                   fold_name(from_name) || ' ' || lower(from_email) as person
              from (select distinct list, month, from_name, from_email from unchanged) a
            except
            select list, month, lower(from_email),
                   fold_name(from_name) || ' ' || lower(from_email)
              from (select distinct m.list, m.month, m.from_name, m.from_email
                      from (select distinct list, month from unchanged) u
                     cross join lateral (
                           select list, month, from_name, from_email from messages
                            where (list, month) = (u.list, u.month)
                           offset 0) m) a) gone
     where (s.list, s.month, s.address, s.person)
           = (gone.list, gone.month, gone.address, gone.person);
    return null;
end $$;
comment on function forget_senders() is 'Deletes authors without messages from senders.';

create trigger senders_inserted after insert on messages
referencing new table as changed
for each statement execute function note_senders();

create trigger senders_updated after update on messages
referencing new table as changed
for each statement execute function note_senders();

create trigger senders_replaced after update on messages
referencing old table as unchanged
for each statement execute function forget_senders();

create trigger senders_deleted after delete on messages
referencing old table as unchanged
for each statement execute function forget_senders();


-- Threads ---------------------------------------------------------------------------------------

create table threads (
    message_id         text primary key,
    thread_id          text not null,
    parent_id          text,
    parent_message_id  text,
    root_id            text not null,
    depth              integer not null,
    position           integer not null,
    is_ghost           boolean not null,
    by_subject         boolean not null default false
);
create index threads_thread_id on threads (thread_id, position);

comment on table threads is
    'One row per message of a thread, over all lists and months. A ghost is a message that others '
    'refer to and that no archive has.';
comment on column threads.message_id is 'Message-ID of the message or ghost.';
comment on column threads.thread_id is 'The smallest Message-ID in the thread, ghosts included.';
comment on column threads.parent_id is
    'The nearest ancestor that is archived; null if there is none.';
comment on column threads.parent_message_id is
    'The direct parent, which may be a ghost; null at the top of a thread.';
comment on column threads.root_id is 'The topmost ancestor, which may be a ghost.';
comment on column threads.depth is 'Number of archived ancestors.';
comment on column threads.position is 'Position in the thread in pre-order, from 0.';
comment on column threads.is_ghost is 'True if no archive has the message.';
comment on column threads.by_subject is
    'True if the message joined the thread only by its subject: it is an answer to a message that no '
    'archive has, and parent_id is the first message of its topic.';

create table thread_aliases (
    id          text primary key,
    message_id  text not null,
    named       boolean not null
);
create index thread_aliases_message_id on thread_aliases (message_id);

comment on table thread_aliases is
    'Message-IDs that lead to a thread but are not part of it, so that old links keep working.';
comment on column thread_aliases.id is 'Message-ID that is not in threads.';
comment on column thread_aliases.message_id is 'A message of the thread that the id leads to.';
comment on column thread_aliases.named is
    'True if a message of the thread refers to the id; false if the id was part of the thread '
    'earlier.';

create table thread_changes (
    message_id  text not null
);
create index thread_changes_message_id on thread_changes (message_id);

comment on table thread_changes is
    'Messages that were added or deleted, or whose references changed, since threads were last '
    'built. Filled by triggers on messages.';
comment on column thread_changes.message_id is 'Message-ID of the message.';
-- No statistics: they contain common values and stay when the table is emptied, so they could name
-- forgotten mail.
alter table thread_changes alter message_id set statistics 0;

create function note_thread_changes() returns trigger language plpgsql as $$
begin
    insert into thread_changes select distinct message_id from changed;
    return null;
end $$;
comment on function note_thread_changes() is 'Adds inserted or deleted messages to thread_changes.';

create function note_thread_updates() returns trigger language plpgsql as $$
begin
    if not exists (select from changed) then
        return null;
    end if;
    insert into thread_changes
    select distinct message_id
      from (select list, month, message_id, variant, refs, in_reply_to, sent_at, arrived_at, topic,
                   is_answer
              from changed
            except
            select list, month, message_id, variant, refs, in_reply_to, sent_at, arrived_at, topic,
                   is_answer
              from unchanged) n;
    return null;
end $$;
comment on function note_thread_updates() is
    'Adds messages whose references, date, arrival or topic changed to thread_changes.';

create trigger messages_inserted after insert on messages
referencing new table as changed
for each statement execute function note_thread_changes();

create trigger messages_deleted after delete on messages
referencing old table as changed
for each statement execute function note_thread_changes();

create trigger messages_updated after update on messages
referencing old table as unchanged new table as changed
for each statement execute function note_thread_updates();


-- Commits and the mail that decided them ---------------------------------------------------------

create table commits (
    list             text not null,
    month            text not null,
    repository       text not null,
    sha              text not null,
    parents          text[] not null,
    author_name      text not null,
    author_email     text not null,
    authored_at      timestamptz not null,
    committer_name   text not null,
    committer_email  text not null,
    committed_at     timestamptz not null,
    subject          text not null,
    title_key        text not null,
    body             text not null,
    trailers         jsonb not null,
    named_mails      text[] not null,
    picked_from      text[] not null,
    reverts          text[] not null,
    files            jsonb not null,
    added            integer not null,
    removed          integer not null,
    patch_id         text not null,
    line_digests     integer[] not null,
    flags            text[] not null,
    changed_names    text not null generated always as (list_changed_names(files)) stored,
    primary key (repository, sha)
);
create index commits_month on commits (list, month);
create index commits_sha on commits (sha text_pattern_ops);
create index commits_patch_id on commits (patch_id) where patch_id <> '';
create index commits_title on commits (title_key);
create index commits_author on commits (lower(author_email), authored_at);
create index commits_authored on commits (authored_at);
create index commits_committer on commits (lower(committer_email), committed_at);
create index commits_first_line on commits ((line_digests[1]), committed_at);
create index commits_named on commits using gin (named_mails);
-- 4 MB for 60,000 commits. A row per name, or an array of path suffixes, could not find a substring.
do $$
begin
    if exists (select from pg_extension where extname = 'pg_trgm') then
        create index commits_changed_names on commits using gin (changed_names gin_trgm_ops);
    end if;
end $$;

comment on table commits is
    'One row per commit on the branch of a repository of lists.toml, in the month of its committer '
    'date. It belongs to the first list of the repository.';
comment on column commits.list is 'Name of the mailing list whose months have the commit.';
comment on column commits.month is 'Month of the committer''s date in UTC, YYYY-MM.';
comment on column commits.repository is 'Name of the repository in lists.toml.';
comment on column commits.sha is 'Id of the commit.';
comment on column commits.parents is 'Ids of its parents; several for a merge.';
comment on column commits.author_name is 'Name of the author.';
comment on column commits.author_email is 'Address of the author.';
comment on column commits.authored_at is 'Date of the author.';
comment on column commits.committer_name is 'Name of the committer.';
comment on column commits.committer_email is 'Address of the committer.';
comment on column commits.committed_at is 'Date of the committer.';
comment on column commits.subject is 'First paragraph of the message, as one line.';
comment on column commits.title_key is 'The subject, folded for comparison, as in patches.';
comment on column commits.body is 'The message without its subject.';
comment on column commits.trailers is 'Trailers of the message in order: [[key, value], ...].';
comment on column commits.named_mails is
    'Message-IDs in links and ids of the commit message, those of trailers first.';
comment on column commits.picked_from is
    'Commits, as written, that this one was cherry-picked from.';
comment on column commits.reverts is 'Commits, as written, that this one reverts.';
comment on column commits.files is
    'Changed files: path, old_path, change, added, removed, functions, is_binary.';
comment on column commits.added is 'Number of added lines.';
comment on column commits.removed is 'Number of removed lines.';
comment on column commits.patch_id is
    'Output of git patch-id --stable for its diff; empty for a merge or without a diff.';
comment on column commits.line_digests is 'Digests of its changed lines, as in patches.';
comment on column commits.flags is 'What was cut or repaired, such as diff_capped.';
comment on column commits.changed_names is
    'Changed files and functions, as list_changed_names returns them, for an index.';

create table commit_links (
    repository  text not null,
    sha         text not null,
    message_id  text not null,
    kind        text not null
        check (kind in ('applied', 'version', 'discussion', 'report', 'missing')),
    place       integer not null,
    evidence    text[] not null,
    primary key (repository, sha, message_id, kind)
);
create index commit_links_message_id on commit_links (message_id);
create index commit_links_applied on commit_links (message_id) where kind = 'applied';

comment on table commit_links is
    'Messages that a commit came from or that are about it, with the evidence. A commit without a '
    'row has no certain mail.';
comment on column commit_links.repository is 'Name of the repository.';
comment on column commit_links.sha is 'Id of the commit.';
comment on column commit_links.message_id is 'Message-ID of the message.';
comment on column commit_links.kind is
    'applied: the patch that became the commit. version: another version of it. discussion and '
    'report: named by the commit. missing: named by the commit, but not in this archive.';
comment on column commit_links.place is 'Order of the links of a commit, best first, from 0.';
comment on column commit_links.evidence is
    'Why it is linked: trailer, patch-id, date, subject, author, files, share of the lines.';

create table commit_link_months (
    list    text not null,
    month   text not null,
    counts  jsonb not null,
    digest  text not null,
    primary key (list, month)
);

comment on table commit_link_months is
    'Counts and digest of the links per month of commits, as of the last run that changed them. '
    'Other months are not counted again.';
comment on column commit_link_months.list is 'Name of the mailing list whose months have the commits.';
comment on column commit_link_months.month is 'Month of the commits, YYYY-MM.';
comment on column commit_link_months.counts is
    'Number of commits: all, by kind of link, and by the evidence that found their mail.';
comment on column commit_link_months.digest is 'Digest over the links of the commits of the month.';

create table commit_link_sources (
    asset   text not null,
    list    text not null,
    month   text not null,
    digest  text not null,
    primary key (asset, list, month)
);

comment on table commit_link_sources is
    'Months of commits, patches and messages that links were made from, with their digests then.';
comment on column commit_link_sources.asset is 'commits, patches or messages.';
comment on column commit_link_sources.list is 'Name of the mailing list.';
comment on column commit_link_sources.month is 'Month, YYYY-MM.';
comment on column commit_link_sources.digest is 'Digest of the month, as in partitions.';

create table commit_link_changes (
    number      bigint generated always as identity primary key,
    repository  text not null,
    sha         text not null
);

comment on table commit_link_changes is
    'Commits whose links the next run makes again: changed months concern them, they lost a linked '
    'message, or their mail became contested or is no longer. Filled by the step and by triggers on '
    'messages and contested_texts. Each batch of the step deletes the commits that it links.';
comment on column commit_link_changes.number is 'Number of the row.';
comment on column commit_link_changes.repository is 'Name of the repository.';
comment on column commit_link_changes.sha is 'Id of the commit.';

create function drop_links_of_messages() returns trigger language plpgsql as $$
begin
    with gone as (
        delete from commit_links l
         using (select distinct message_id from unchanged) o
         where l.message_id = o.message_id
           and not exists (select from messages m where m.message_id = o.message_id)
        returning l.repository, l.sha)
    insert into commit_link_changes (repository, sha) select distinct repository, sha from gone;
    return null;
end $$;
comment on function drop_links_of_messages() is
    'Deletes the links of deleted messages. The next run links their commits again.';

create trigger links_deleted after delete on messages
referencing old table as unchanged
for each statement execute function drop_links_of_messages();

create function drop_links_of_commits() returns trigger language plpgsql as $$
begin
    delete from commit_links l
     using unchanged c
     where (l.repository, l.sha) = (c.repository, c.sha);
    insert into commit_link_changes (repository, sha)
    select t.repository, o.sha
      from (select distinct repository, title_key from unchanged) t
     cross join lateral (
           select min(sha) as sha
             from (select sha
                     from commits
                    where title_key = t.title_key and repository = t.repository
                    limit 2) few
           having count(*) = 1) o;
    return null;
end $$;
comment on function drop_links_of_commits() is
    'Deletes the links of deleted commits. If only one commit with the title is left, the next run '
    'links it again.';

create trigger links_of_commits_deleted after delete on commits
referencing old table as unchanged
for each statement execute function drop_links_of_commits();

create function note_contested_patches() returns trigger language plpgsql as $$
declare
    ids text[] := array(select distinct message_id from changed);
begin
    -- most loads contest nothing, and each query below costs more than loading a message
    if ids = '{}' then
        return null;
    end if;
    insert into patch_changes select unnest(ids);
    insert into commit_link_changes (repository, sha)
    select repository, sha from commits where named_mails && ids
     union
    select repository, sha from commit_links where message_id = any(ids)
     union
    select c.repository, c.sha
      from patches p join commits c on c.patch_id = p.patch_id
     where p.message_id = any(ids) and p.patch_id <> '' and c.patch_id <> ''
     union
    select c.repository, c.sha
      from patches p join commits c on c.title_key = p.title_key
     where p.message_id = any(ids);
    return null;
end $$;
comment on function note_contested_patches() is
    'Queues series and commits of ids that became contested or are no longer, or whose texts arrived '
    'in another order: a contested message is no evidence.';

create trigger patches_contested_inserted after insert on contested_texts
referencing new table as changed
for each statement execute function note_contested_patches();

create trigger patches_contested_deleted after delete on contested_texts
referencing old table as changed
for each statement execute function note_contested_patches();

create trigger patches_contested_updated after update on contested_texts
referencing new table as changed
for each statement execute function note_contested_patches();

-- A thread as if closed messages did not exist: their answers become answers to the nearest shown
-- ancestor. A ghost stays if a message below it is shown.
create function shown_thread(wanted text, shown text[] default shown_lists())
returns setof threads
language plpgsql stable parallel safe set plan_cache_mode = force_generic_plan as $$
begin
    if not hides_lists(shown) then
        return query
        select t.* from threads w join threads t on t.thread_id = w.thread_id
         where w.message_id = wanted;
        return;
    end if;
    return query
    with recursive stored as materialized (
        select t.*, not t.is_ghost and is_closed(t.message_id, shown) as closed
          from threads w
          join threads t on t.thread_id = w.thread_id
         where w.message_id = wanted),
    needed as (
        select s.message_id, s.parent_message_id from stored s where not s.is_ghost and not s.closed
        union
        select s.message_id, s.parent_message_id
          from needed d
          join stored s on s.message_id = d.parent_message_id
         where not s.closed),
    nodes as materialized (
        select s.*, d.message_id is null as dropped
          from stored s
          left join needed d on d.message_id = s.message_id),
    -- from each dropped node up to the nearest one that stays
    above_parents as (
        select n.message_id, n.parent_id as above from nodes n where n.dropped
        union all
        select p.message_id, n.parent_id
          from above_parents p
          join nodes n on n.message_id = p.above
         where n.dropped),
    above_directs as (
        select n.message_id, n.parent_message_id as above from nodes n where n.dropped
        union all
        select d.message_id, n.parent_message_id
          from above_directs d
          join nodes n on n.message_id = d.above
         where n.dropped),
    kept as materialized (
        select k.message_id, k.root_id, k.position, k.is_ghost, k.by_subject,
               case when p.message_id is null then k.parent_id else p.above end as parent_id,
               case when d.message_id is null then k.parent_message_id else d.above end
                   as parent_message_id
          from nodes k
          left join (select p.message_id, p.above
                       from above_parents p
                       left join nodes n on n.message_id = p.above
                      where not coalesce(n.dropped, false)) p on p.message_id = k.parent_id
          left join (select d.message_id, d.above
                       from above_directs d
                       left join nodes n on n.message_id = d.above
                      where not coalesce(n.dropped, false)) d
            on d.message_id = k.parent_message_id
         where not k.dropped),
    levels as (
        select k.message_id, 0 as level, k.message_id as root from kept k where k.parent_id is null
        union all
        select k.message_id, l.level + 1, l.root
          from levels l
          join kept k on k.parent_id = l.message_id)
    select k.message_id, min(k.message_id collate "C") over () collate "default", k.parent_id,
           k.parent_message_id,
           case when exists (select from kept r where r.message_id = k.root_id) then k.root_id
                else coalesce(l.root, k.message_id) end,
           coalesce(l.level, 0),
           (row_number() over (order by k.position))::integer - 1, k.is_ghost, k.by_subject
      from kept k
      left join levels l on l.message_id = k.message_id
     order by k.position;
end $$;
comment on function shown_thread(text, text[]) is
    'The thread of a message as this session may show it, with ghosts.';

create function shown_node(id text, shown text[] default shown_lists())
returns setof threads
language plpgsql stable parallel safe set plan_cache_mode = force_generic_plan as $$
begin
    if hides_lists(shown) then
        return query select t.* from shown_thread(id, shown) t where t.message_id = id;
    else
        return query select t.* from threads t where t.message_id = id;
    end if;
end $$;
comment on function shown_node(text, text[]) is
    'The node of a message or ghost in its thread, as this session may show it.';

create function shown_thread_id(id text, shown text[] default shown_lists()) returns text
language plpgsql stable parallel safe set plan_cache_mode = force_generic_plan as $$
begin
    if not hides_lists(shown) then
        return id;
    end if;
    return (select t.thread_id from shown_thread(id, shown) t limit 1);
end $$;
comment on function shown_thread_id(text, text[]) is
    'The id that may be shown for a thread: never the id of a closed message.';


-- Summaries of threads --------------------------------------------------------------------------

create table thread_summaries (
    thread_id      text primary key,
    maker          text not null,
    verbatim       boolean not null,
    content_hash   bytea not null,
    messages       integer not null,
    first_sent_at  timestamptz not null,
    last_sent_at   timestamptz not null,
    participants   text[] not null,
    patches        text[] not null,
    sentences      jsonb not null,
    statements     jsonb not null,
    checksum       bigint not null,
    made_at        timestamptz not null default now()
);

comment on table thread_summaries is
    'One row per thread: a summary, whose sentences each name the message that they come from.';
comment on column thread_summaries.thread_id is 'The thread, as in threads.';
comment on column thread_summaries.maker is
    'Fingerprint of the rules and their version, or of the chat model.';
comment on column thread_summaries.verbatim is
    'True if the sentences are quoted from messages, false if a model wrote them.';
comment on column thread_summaries.content_hash is
    'Hash of the input, from thread_contents.';
comment on column thread_summaries.messages is 'Number of archived messages that it was made from.';
comment on column thread_summaries.first_sent_at is 'When the earliest message was sent.';
comment on column thread_summaries.last_sent_at is 'When the latest message was sent.';
comment on column thread_summaries.participants is
    'Names of the authors, in the order of their first message.';
comment on column thread_summaries.patches is 'Message-IDs of messages with a patch.';
comment on column thread_summaries.sentences is
    'Sentences in order: text, part (question, discussion, outcome), message, start and end in '
    'characters of its body_text, and other messages that support it.';
comment on column thread_summaries.statements is
    'Sentences of messages that state a decision or an alternative, by time: text, part (decision, '
    'alternative), outcome, firm (the author did what the sentence states), message, start and end '
    'in characters of its body_text.';
comment on column thread_summaries.checksum is
    'Checksum of the other columns, set with content_hash, as in messages.';
comment on column thread_summaries.made_at is 'When it was made.';

create function summary_checksum(s thread_summaries) returns bigint
    language sql stable parallel safe
    return hash_record_extended(row(
        s.thread_id, s.maker, s.verbatim, s.content_hash, s.messages, s.first_sent_at,
        s.last_sent_at, s.participants, s.patches, s.sentences, s.statements), 0);
comment on function summary_checksum(thread_summaries) is 'The checksum that a row should have.';

create function set_summary_checksum() returns trigger language plpgsql as $$
begin
    new.checksum := summary_checksum(new);
    return new;
end $$;
comment on function set_summary_checksum() is 'Sets the checksum of a summary that is written.';

create trigger summaries_checksum before insert or update of content_hash on thread_summaries
for each row execute function set_summary_checksum();

-- No unique key, because parallel loads would wait for each other: a thread may have several rows.
create table summary_changes (
    thread_id  text not null,
    noted_at   timestamptz not null default now()
);
create index summary_changes_thread_id on summary_changes (thread_id);

comment on table summary_changes is
    'Threads that have changed since they were summarized. Filled by triggers on messages and '
    'threads.';
comment on column summary_changes.thread_id is 'The thread, as in threads.';
comment on column summary_changes.noted_at is 'When the transaction that changed it began.';
-- No statistics, as for thread_changes.
alter table summary_changes alter thread_id set statistics 0;

-- Only the copy of a message that arrived first counts; contested messages do not. Rights and
-- row-level security of the reader apply, not those of the owner.
create view thread_contents with (security_invoker = true) as
select t.thread_id, count(*)::integer as messages, sum(m.characters)::bigint as characters,
       sha256(convert_to(string_agg(m.content, '' order by t.position), 'UTF8')) as content_hash
  from threads t
 cross join lateral (
       select length(c.body_text) as characters,
              md5(jsonb_build_array(
                  c.message_id, t.parent_id, c.from_name, c.from_email,
                  extract(epoch from c.sent_at), c.subject, c.body_text, c.segments,
                  t.by_subject)::text)
              || case when c.attachments @> '[{"is_patch": true}]' then 'patch attached' else '' end
                  as content
         from first_copy(t.message_id) c) m
 where not exists (select from contested_texts where message_id = t.message_id)
 group by t.thread_id
having count(*) > 1;
comment on view thread_contents is
    'Per thread with two or more archived messages that are not contested: their number, the length '
    'of their texts, and a hash of the input of a summary.';

create view shown_summaries with (security_invoker = true) as
select s.*
  from thread_summaries s
 where not (select hides_lists())
    or not exists (
       select from threads t
        cross join lateral first_copy(t.message_id) m
        where t.thread_id = s.thread_id and m.list <> all((select shown_lists())::text[]));

comment on view shown_summaries is
    'Summaries that were made only from messages that this session may show.';

create function note_summary_messages() returns trigger language plpgsql as $$
begin
    insert into summary_changes (thread_id)
    select distinct t.thread_id from changed c join threads t using (message_id);
    return null;
end $$;
comment on function note_summary_messages() is
    'Adds the threads of new messages to summary_changes; their summaries stay until they are '
    'made again.';

create function drop_summaries_of_messages() returns trigger language plpgsql as $$
begin
    if not exists (select from unchanged) then
        return null;
    end if;
    with touched as materialized (
        select distinct t.thread_id
          from unchanged o
          join threads t using (message_id)
         where not exists (
               select from messages m
                where (m.list, m.month, m.message_id, m.variant)
                      = (o.list, o.month, o.message_id, o.variant)
                  and (m.from_name, m.from_email, m.sent_at, m.arrived_at, m.subject, m.body_text,
                       m.segments, m.attachments @> '[{"is_patch": true}]')
                      is not distinct from (o.from_name, o.from_email, o.sent_at, o.arrived_at,
                                            o.subject, o.body_text, o.segments,
                                            o.attachments @> '[{"is_patch": true}]'))),
    dropped as (
        delete from thread_summaries s using touched where s.thread_id = touched.thread_id)
    insert into summary_changes (thread_id) select thread_id from touched;
    return null;
end $$;
comment on function drop_summaries_of_messages() is
    'Immediately deletes the summaries of threads that lost or changed a message.';

create function drop_contested_summaries() returns trigger language plpgsql as $$
begin
    if not exists (select from changed) then
        return null;
    end if;
    with touched as materialized (
        select distinct t.thread_id from changed c join threads t using (message_id)),
    dropped as (
        delete from thread_summaries s using touched where s.thread_id = touched.thread_id)
    insert into summary_changes (thread_id) select thread_id from touched;
    return null;
end $$;
comment on function drop_contested_summaries() is
    'Deletes the summaries of threads with a message that became contested or is no longer.';

create function note_summary_threads() returns trigger language plpgsql as $$
begin
    insert into summary_changes (thread_id) select distinct thread_id from changed;
    return null;
end $$;
comment on function note_summary_threads() is
    'Adds threads that grew or whose order changed to summary_changes.';

create function drop_summaries_of_threads() returns trigger language plpgsql as $$
begin
    with touched as materialized (
        select distinct o.thread_id
          from unchanged o
         where not exists (
               select from threads t
                where (t.message_id, t.thread_id) = (o.message_id, o.thread_id))),
    emptied as materialized (
        select thread_id from touched o
         where not exists (select from threads t where t.thread_id = o.thread_id)),
    dropped as (
        delete from thread_summaries s using touched where s.thread_id = touched.thread_id),
    forgotten as (
        delete from summary_changes c using emptied where c.thread_id = emptied.thread_id)
    insert into summary_changes (thread_id)
    select thread_id from touched except select thread_id from emptied;
    return null;
end $$;
comment on function drop_summaries_of_threads() is
    'Immediately deletes the summaries of threads that a message left: while a summary exists, all '
    'its messages are in the thread.';

create trigger summaries_messages_inserted after insert on messages
referencing new table as changed
for each statement execute function note_summary_messages();

create trigger summaries_messages_updated after update on messages
referencing old table as unchanged
for each statement execute function drop_summaries_of_messages();

create trigger summaries_messages_deleted after delete on messages
referencing old table as unchanged
for each statement execute function drop_summaries_of_messages();

create trigger summaries_contested_inserted after insert on contested_texts
referencing new table as changed
for each statement execute function drop_contested_summaries();

create trigger summaries_contested_deleted after delete on contested_texts
referencing old table as changed
for each statement execute function drop_contested_summaries();

create trigger summaries_threads_inserted after insert on threads
referencing new table as changed
for each statement execute function note_summary_threads();

create trigger summaries_threads_updated after update on threads
referencing new table as changed
for each statement execute function note_summary_threads();

create trigger summaries_threads_replaced after update on threads
referencing old table as unchanged
for each statement execute function drop_summaries_of_threads();

create trigger summaries_threads_deleted after delete on threads
referencing old table as unchanged
for each statement execute function drop_summaries_of_threads();


-- Chunks ----------------------------------------------------------------------------------------

create table chunks (
    key         text primary key,
    list        text not null,
    month       text not null,
    message_id  text not null,
    variant     smallint not null,
    index       integer not null,
    text        text not null,
    spans       integer[] not null,
    tokens      integer not null,
    text_hash   bytea not null
);
create index chunks_archive on chunks (list, month);
create index chunks_message_id on chunks (message_id);
create index chunks_text_hash on chunks (text_hash);

comment on table chunks is
    'Pieces of the new text of messages (without quotes and signatures), each of the size that '
    'the encoder takes.';
comment on column chunks.key is
    'Key of the chunk and of its vector: a hash of list, month and Message-ID, then # and the '
    'index.';
comment on column chunks.list is 'Name of the mailing list.';
comment on column chunks.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column chunks.message_id is 'Message-ID of the message.';
comment on column chunks.variant is 'Variant of the message, as in messages.';
comment on column chunks.index is 'Position of the chunk in its message, from 0.';
comment on column chunks.text is 'Text of the chunk: the body at its spans.';
comment on column chunks.spans is
    'Position of the text in messages.body_text: start, end, start, end, ... in characters.';
comment on column chunks.tokens is 'Number of tokens that the encoder reads, with the subject.';
comment on column chunks.text_hash is
    'SHA-256 of the encoder''s input, subject and text. Chunks with equal hashes share a vector.';


-- Patches ---------------------------------------------------------------------------------------

create table patches (
    list          text not null,
    month         text not null,
    message_id    text not null,
    variant       smallint not null,
    place         smallint not null,
    kind          text not null check (kind in ('patch', 'cover')),
    source        text not null check (source in ('body', 'attachment')),
    file_name     text not null,
    subject       text not null,
    title         text not null,
    title_key     text not null,
    tags          text[] not null,
    version       integer not null,
    part          integer,
    parts         integer,
    author_name   text not null,
    author_email  text not null,
    sent_at       timestamptz not null,
    patch_id      text not null,
    files         jsonb not null,
    file_count    integer not null,
    added         integer not null,
    removed       integer not null,
    line_digests  integer[] not null,
    base_commit   text not null,
    named_commits text[] not null,
    change_id     text not null,
    links         jsonb not null,
    changelog     text[] not null,
    malformed     text not null,
    flags         text[] not null,
    primary key (list, month, message_id, variant, place)
);
create index patches_message_id on patches (message_id);
create index patches_patch_id on patches (patch_id) where patch_id <> '';
create index patches_change_id on patches (change_id) where change_id <> '';
create index patches_title_key on patches using hash (title_key);
create index patches_author on patches (lower(author_email), sent_at);
create index patches_first_line on patches ((line_digests[1]), sent_at);
create index patches_list_date on patches (list, sent_at);
create index patches_covers on patches (message_id) where kind = 'cover';

comment on table patches is
    'One row per mailed patch, inline or attached, and per cover letter of a series.';
comment on column patches.list is 'Name of the mailing list.';
comment on column patches.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column patches.message_id is 'Message-ID of the message.';
comment on column patches.variant is 'Variant of the message, as in messages.';
comment on column patches.place is 'Position of the patch among those of its message, from 0.';
comment on column patches.kind is
    'patch, or cover: a message labelled as a patch that has no diff and begins a series.';
comment on column patches.source is 'Where the patch is: body or attachment.';
comment on column patches.file_name is 'Name of the attached file; empty for the body.';
comment on column patches.subject is
    'Subject as written in the attached patch or an in-body Subject, else of the message.';
comment on column patches.title is 'Subject without brackets and Re:, as a commit has it.';
comment on column patches.title_key is
    'Letters and digits of the title, without case, to compare titles.';
comment on column patches.tags is
    'Words in the brackets other than PATCH, version and part, in lower case: trees, rfc, resend.';
comment on column patches.version is 'Version (v3), 1 if none is written.';
comment on column patches.part is 'Number in its series (2 of 2/5); 0 for a cover letter.';
comment on column patches.parts is 'Number of patches of its series (5 of 2/5).';
comment on column patches.author_name is 'Author: of an in-body From, else of the message.';
comment on column patches.author_email is 'Address of the author.';
comment on column patches.sent_at is 'When the message was sent.';
comment on column patches.patch_id is
    'Output of git patch-id --stable for what git am applies; empty if there is none.';
comment on column patches.files is
    'Changed files: path, old_path, change, added, removed, functions, is_binary.';
comment on column patches.file_count is 'Number of changed files; the first 2,000 are in files.';
comment on column patches.added is 'Lines added.';
comment on column patches.removed is 'Lines removed.';
comment on column patches.line_digests is
    'Digests of the changed lines without blanks, ascending; at most 2,000, the smallest.';
comment on column patches.base_commit is 'Commit that the patch is based on, as its author says.';
comment on column patches.named_commits is
    'Ids of commits in the text around its diff, as git show, git log and notifications write them. '
    'A mail that names a commit is later than the commit.';
comment on column patches.change_id is 'Change-Id of Gerrit or change-id of b4, as written.';
comment on column patches.links is
    'Earlier versions that the author links: [[version or null, Message-ID], ...].';
comment on column patches.changelog is
    'Lines in which the author says what changed since earlier versions.';
comment on column patches.malformed is 'Why git refuses the patch; empty if nothing is known.';
comment on column patches.flags is
    'Oddities: answer, combined, context, files_capped, lines_capped, mended, no_label, '
    'patches_capped.';


-- Series of patches -----------------------------------------------------------------------------

create table patch_series (
    message_id      text not null,
    place           smallint not null,
    ref             bigint not null,
    list            text not null,
    month           text not null,
    variant         smallint not null,
    series_id       text not null,
    posting         integer not null,
    change          integer not null,
    previous_id     text,
    evidence        text[] not null,
    is_remark       boolean not null,
    is_taken_over   boolean not null,
    by_stranger     boolean not null,
    is_newest       boolean not null,
    state           text not null
        check (state in ('open', 'applied', 'superseded', 'rejected', 'withdrawn')),
    reason_id       text,
    reason_start    integer,
    reason_end      integer,
    shas            text[] not null,
    primary key (message_id, place)
);
create index patch_series_change on patch_series (series_id, change);
create index patch_series_ref on patch_series (ref);
create index patch_series_reason_id on patch_series (reason_id) where reason_id is not null;
create index patch_series_open on patch_series (list, month)
    where state = 'open' and not is_remark;
create index patch_series_applied on patch_series (message_id) where state = 'applied';
create index patch_series_taken_over on patch_series (message_id) where is_taken_over;

comment on table patch_series is
    'One row per patch and cover letter: its series, its previous version, and its state. A series '
    'is all postings of one change, over all lists and months.';
comment on column patch_series.message_id is 'Message-ID of the message, as in patches.';
comment on column patch_series.place is 'Position in its message, as in patches.';
comment on column patch_series.ref is 'Digest of message_id and place, as in patch_keys.';
comment on column patch_series.list is 'List of the copy that arrived first, which counts.';
comment on column patch_series.month is 'Month of that copy.';
comment on column patch_series.variant is 'Variant of that copy.';
comment on column patch_series.series_id is 'Message-ID of the first message of the series.';
comment on column patch_series.posting is
    'Number of its posting in the series, from 0, by date. A posting is what was sent at once.';
comment on column patch_series.change is
    'Number of its change in the series, from 0. All versions of one patch have the same number.';
comment on column patch_series.previous_id is
    'Message-ID of the previous version of the same change; null for the first.';
comment on column patch_series.evidence is
    'Evidence for the previous version: patch-id, change-id, link, reply, title, lines.';
comment on column patch_series.is_remark is
    'True for a diff within an answer, a suggestion, unless a version continues it.';
comment on column patch_series.is_taken_over is
    'True if its sender had sent or written no earlier version, except versions taken over.';
comment on column patch_series.by_stranger is
    'True if somebody without standing (has_standing) has taken it over: it does not count for other '
    'versions.';
comment on column patch_series.is_newest is
    'True if its sender or author has sent no newer version of the change.';
comment on column patch_series.state is
    'State: open, applied, superseded (by its next version, or because a mail says so), rejected or '
    'withdrawn.';
comment on column patch_series.reason_id is
    'Message-ID of the mail that states this, or of the version that supersedes it.';
comment on column patch_series.reason_start is
    'First character of the statement in the body of that mail; null for a newer version.';
comment on column patch_series.reason_end is 'Character after it.';
comment on column patch_series.shas is 'Commits that the mail names, as written.';

create view applied_parts with (security_invoker = true) as
select k.message_id
  from commit_links k
  join commits c using (repository, sha)
 where k.kind = 'applied' and c.list = any((select shown_lists())::text[])
 union all
select s.message_id
  from patch_series s
 where s.state = 'applied'
   and exists (select from shown_messages r where r.message_id = s.reason_id);

comment on view applied_parts is
    'Mails of patches that became commits, or that a mail calls applied, as far as this session may '
    'show both.';

create table patch_states (
    state       text not null check (state in ('applied', 'open', 'latest')),
    message_id  text not null,
    series_id   text not null,
    lists       text[] not null,
    primary key (state, message_id)
);
create index patch_states_series on patch_states (series_id);
create index patch_states_mixed on patch_states (series_id) where lists[2] is not null;

comment on table patch_states is
    'Mails of patches by state, as if all lists were shown. Triggers maintain it with '
    'find_patch_states.';
comment on column patch_states.state is
    'applied: it became commits, or a mail says so; for a cover letter, all patches sent with it. '
    'open: no version was applied, rejected, withdrawn or superseded. latest: the newest version that '
    'was applied, else the newest version that is not by a stranger.';
comment on column patch_states.message_id is 'Message-ID of the mail.';
comment on column patch_states.series_id is 'Its series, as in patch_series.';
comment on column patch_states.lists is
    'Lists that the series depends on: of its mail, of mail that gives a reason, and of commits.';

-- Rows are looked up one by one and then combined by window functions. The planner expects few series
-- and would join many of them with nested loops. `offset 0` keeps it from reading whole tables.
create function find_patch_states(wanted text[], shown text[] default null)
returns table (state text, message_id text, series_id text)
language sql stable parallel safe as $$
    with members as (
        select s.message_id, s.series_id, s.posting, s.change, s.is_remark, s.state,
               s.by_stranger,
               not s.is_remark
               and (shown is null or s.list = any(shown)
                    or exists (select from messages m
                                where m.message_id = s.message_id and m.list = any(shown)
                               offset 0)) as is_shown,
               exists (select from messages r
                        where r.message_id = s.reason_id and (shown is null or r.list = any(shown))
                       offset 0) as has_reason,
               exists (select from commit_links k
                        cross join lateral (
                              select list
                                from commits
                               where (repository, sha) = (k.repository, k.sha)
                              offset 0) c
                        where k.message_id = s.message_id and k.kind = 'applied'
                          and (shown is null or c.list = any(shown))
                       offset 0) as has_commit,
               (select p.parts
                  from patches p
                 where p.message_id = s.message_id and p.kind = 'cover'
                   and (p.list, p.month, p.variant, p.place)
                       = (s.list, s.month, s.variant, s.place)) as parts_of_cover,
               exists (select from patches p
                        where p.message_id = s.message_id and p.kind = 'cover'
                          and (p.list, p.month, p.variant, p.place)
                              = (s.list, s.month, s.variant, s.place)
                       offset 0) as is_cover
          from patch_series s
         where s.series_id = any(wanted)),
    landed as (
        select *, bool_or(has_commit or m.state = 'applied' and has_reason)
                      over (partition by m.message_id) as has_landed
          from members m),
    posted as (
        select *, count(*) filter (where not is_cover and not is_remark) over posting as parts,
               bool_and(has_landed) filter (where not is_cover and not is_remark) over posting
                   as all_landed
          from landed l
        window posting as (partition by l.series_id, l.posting)),
    applied as (
        select *, bool_or(has_landed
                          or coalesce(is_cover and parts_of_cover = parts and all_landed, false))
                      over (partition by p.message_id) as is_applied
          from posted p),
    decided as (
        select *, bool_or(is_applied and is_shown) over change as is_decided,
               is_shown
               and row_number() over (change order by is_shown desc, is_applied desc, by_stranger,
                                                      posting desc, a.message_id desc) = 1
                   as is_latest
          from applied a
        window change as (partition by a.series_id, a.change))
    select distinct f.state, d.message_id, d.series_id
      from decided d
     cross join lateral (
           values ('applied', is_applied),
                  ('open', is_shown and not is_decided
                           and (d.state = 'open' or not has_reason)),
                  ('latest', is_latest)) as f (state, holds)
     where f.holds
$$;
comment on function find_patch_states(text[], text[]) is
    'States of the mails of some series, as far as some lists show them; null for all lists.';

create function lock_patch_states() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('patch_states', 0));
    return null;
end $$;
comment on function lock_patch_states() is
    'Lets only one transaction at a time change what patch_states is computed from, before it locks '
    'rows: of two, each would miss what the other writes.';

create function settle_patch_states(wanted text[]) returns void language plpgsql
set enable_nestloop = off as $$
begin
    if cardinality(wanted) = 0 then
        return;
    end if;
    perform pg_advisory_xact_lock(hashtextextended('patch_states', 0));
    with found as materialized (
        select f.state, f.message_id, f.series_id, l.lists
          from find_patch_states(wanted) f
          join (select s.series_id, array_agg(distinct o.list order by o.list) as lists
                  from patch_series s
                 cross join lateral unnest(
                       array[s.list]
                       || array(select m.list from messages m where m.message_id = s.message_id)
                       || array(select m.list from messages m where m.message_id = s.reason_id)
                       || array(select c.list
                                  from commit_links k
                                 cross join lateral (
                                       select list
                                         from commits
                                        where (repository, sha) = (k.repository, k.sha)
                                       offset 0) c
                                 where k.message_id = s.message_id and k.kind = 'applied'))
                       as o (list)
                 where s.series_id = any(wanted)
                 group by s.series_id) l using (series_id)),
    gone as (
        delete from patch_states p
         where p.series_id = any(wanted)
           and not exists (
               select from found f
                where (f.state, f.message_id, f.series_id)
                      = (p.state, p.message_id, p.series_id)))
    insert into patch_states as p (state, message_id, series_id, lists)
    select f.state, f.message_id, f.series_id, f.lists from found f
    on conflict (state, message_id) do update
       set series_id = excluded.series_id, lists = excluded.lists
     where (p.series_id, p.lists) is distinct from (excluded.series_id, excluded.lists);
end $$;
comment on function settle_patch_states(text[]) is 'Computes patch_states of some series.';

create function settle_states_of_series() returns trigger language plpgsql as $$
begin
    perform settle_patch_states(array(select distinct series_id from changed));
    return null;
end $$;
comment on function settle_states_of_series() is
    'Computes the states of series with inserted or deleted rows.';

create function settle_states_of_updated() returns trigger language plpgsql as $$
begin
    perform settle_patch_states(
        array(select series_id from changed union select series_id from unchanged));
    return null;
end $$;
comment on function settle_states_of_updated() is
    'Computes the states of series with changed rows, and of series that rows left.';

create function settle_states_of_links() returns trigger language plpgsql as $$
begin
    perform settle_patch_states(array(
        select distinct s.series_id
          from changed k join patch_series s using (message_id)
         where k.kind = 'applied'));
    return null;
end $$;
comment on function settle_states_of_links() is
    'Computes the states of series whose mails became commits.';

create function settle_states_of_messages() returns trigger language plpgsql as $$
declare
    touched text[] := array(
        select s.series_id from changed m join patch_series s using (message_id)
         union
        select s.series_id from changed m join patch_series s on s.reason_id = m.message_id);
begin
    if touched <> '{}' then
        perform settle_patch_states(touched);
    end if;
    return null;
end $$;
comment on function settle_states_of_messages() is
    'Computes the states of series whose mails or reasons came to a list or left it.';

create function settle_states_of_commits() returns trigger language plpgsql as $$
begin
    perform settle_patch_states(array(
        select distinct s.series_id
          from changed c
          join unchanged o using (repository, sha)
          join commit_links k using (repository, sha)
          join patch_series s using (message_id)
         where c.list <> o.list and k.kind = 'applied'));
    return null;
end $$;
comment on function settle_states_of_commits() is
    'Computes the states of series whose commits now belong to another list.';

create trigger states_series_lock before insert or update or delete on patch_series
for each statement execute function lock_patch_states();

create trigger states_links_lock before insert or delete on commit_links
for each statement execute function lock_patch_states();

create trigger states_series_inserted after insert on patch_series
referencing new table as changed
for each statement execute function settle_states_of_series();

create trigger states_series_deleted after delete on patch_series
referencing old table as changed
for each statement execute function settle_states_of_series();

create trigger states_series_updated after update on patch_series
referencing old table as unchanged new table as changed
for each statement execute function settle_states_of_updated();

create trigger states_links_inserted after insert on commit_links
referencing new table as changed
for each statement execute function settle_states_of_links();

create trigger states_links_deleted after delete on commit_links
referencing old table as changed
for each statement execute function settle_states_of_links();

create trigger states_messages_inserted after insert on messages
referencing new table as changed
for each statement execute function settle_states_of_messages();

create trigger states_messages_deleted after delete on messages
referencing old table as changed
for each statement execute function settle_states_of_messages();

create trigger states_commits_updated after update on commits
referencing old table as unchanged new table as changed
for each statement execute function settle_states_of_commits();

create view mixed_patch_states with (security_invoker = true) as
select f.*
  from find_patch_states(
           array(select distinct p.series_id
                   from patch_states p
                  where p.lists[2] is not null and p.lists && (select shown_lists())
                    and not p.lists <@ (select shown_lists())),
           (select shown_lists())) f
 where (select hides_lists());

comment on view mixed_patch_states is
    'States of patches that depend on lists which this session may not show, computed without those '
    'lists.';

create view shown_patch_states with (security_invoker = true) as
select p.state, p.message_id
  from patch_states p
 where not (select hides_lists()) or p.lists <@ (select shown_lists())
 union all
select m.state, m.message_id from mixed_patch_states m;

comment on view shown_patch_states is
    'States of patches, as far as this session may show them.';

create table patch_outcomes (
    message_id  text not null,
    number      smallint not null,
    outcome     text not null,
    start_at    integer not null,
    end_at      integer not null,
    shas        text[] not null,
    title       text not null,
    parts       integer[] not null,
    whole       boolean not null,
    firm        boolean not null,
    from_email  text not null,
    from_name   text not null,
    sent_at     timestamptz not null,
    ancestors   text[] not null,
    was_known   boolean,
    primary key (message_id, number)
);
create index patch_outcomes_was_known on patch_outcomes (lower(from_email))
    where was_known is not null;
create index patch_outcomes_ancestors on patch_outcomes using gin (ancestors);
create index patch_outcomes_shas on patch_outcomes using gin (shas);
create index patch_outcomes_sender on patch_outcomes (lower(from_email), sent_at);

comment on table patch_outcomes is
    'One row per statement in a mail on the outcome of patches, such as "Applied, thanks".';
comment on column patch_outcomes.message_id is 'Message-ID of the mail.';
comment on column patch_outcomes.number is 'Number of the statement in the mail, from 0.';
comment on column patch_outcomes.outcome is
    'applied, pulled, rejected, withdrawn, superseded or resend-requested.';
comment on column patch_outcomes.start_at is 'First character of the statement in the body.';
comment on column patch_outcomes.end_at is 'Character after it.';
comment on column patch_outcomes.shas is 'Commits that it names, as written.';
comment on column patch_outcomes.title is 'Title of the patch that it names; empty if none.';
comment on column patch_outcomes.parts is 'Parts that it names, such as 1 and 2 of "Applied 1-2".';
comment on column patch_outcomes.whole is 'True if it is about all patches of a posting.';
comment on column patch_outcomes.firm is
    'False for words that authors also use for suggestions that they accepted, such as "merged".';
comment on column patch_outcomes.from_email is 'Address of the sender.';
comment on column patch_outcomes.from_name is 'Name of the sender.';
comment on column patch_outcomes.sent_at is 'When the mail was sent.';
comment on column patch_outcomes.ancestors is 'Message-IDs that the mail refers to, oldest first.';
comment on column patch_outcomes.was_known is
    'Value of has_standing for its sender when a state last depended on it; else null.';

-- Three authors and months are enough, so the query ends early also for somebody who has applied
-- thousands. Months are those of the archives, which no sender chooses.
create function has_standing(address text, shown text[] default shown_lists()) returns boolean
language plpgsql stable parallel safe set plan_cache_mode = force_generic_plan as $$
declare
    others text[] := '{}';
    months text[] := '{}';
    decided record;
begin
    if address = '' then  -- of people whose address is not known
        return false;
    end if;
    perform from commits c
      where lower(c.committer_email) = lower(address) and c.list = any(shown)
      order by c.committed_at  -- by the index: exists would be planned as a scan
      limit 1;
    if found then
        return true;
    end if;
    for decided in
        select p.author, seen.month
          from patch_outcomes o
         cross join lateral (
               select min(r.month) as month
                 from messages r
                where r.message_id = o.message_id and r.list = any(shown)
               having count(*) > 0) seen
         cross join lateral (
               select lower(m.from_email) as author
                 from unnest(o.ancestors) with ordinality as a (message_id, place)
                 join messages m using (message_id)
                where m.list = any(shown)
                  and (o.outcome = 'pulled'  -- a pull request is no patch
                       or exists (
                          select from patch_series s where s.message_id = m.message_id))
                order by a.place desc
                limit 1) p
         where lower(o.from_email) = lower(address) and p.author <> lower(address)
           and o.outcome in ('applied', 'pulled', 'rejected')
         order by o.sent_at  -- by the index, as above
    loop
        if decided.author <> all(others) then
            others := others || decided.author;
        end if;
        if decided.month <> all(months) then
            months := months || decided.month;
        end if;
        if cardinality(others) > 2 and cardinality(months) > 2 then
            return true;
        end if;
    end loop;
    return false;
end $$;
comment on function has_standing(text, text[]) is
    'True if somebody decides on patches, as far as some lists show: has committed to a repository, '
    'or has stated the outcome of patches of three others, in three months. An address is easily '
    'forged.';

create view changed_standing with (security_invoker = true) as
with asked as (
    select o.message_id, lower(o.from_email) as address, o.was_known
      from patch_outcomes o
     where o.was_known is not null
     union all
    select s.message_id, lower(m.from_email), not s.by_stranger
      from patch_series s
     cross join lateral first_copy(s.message_id) m
     where s.is_taken_over)
select q.message_id
  from (select address, has_standing(address, array(select list from lists)) as has_standing
          from (select distinct address from asked) d
        offset 0) a
  join asked q using (address)
 where q.was_known <> a.has_standing;

comment on view changed_standing is
    'Mails on which states depend, and for whose senders has_standing has changed.';

create table patch_keys (
    key         bigint not null,
    at          double precision not null,
    ref         bigint not null,
    of_posting  boolean not null,
    primary key (key, at, ref)
);
create index patch_keys_ref on patch_keys (ref);

comment on table patch_keys is
    'Digests of properties that versions of one change share, to find them: title, patch-id, '
    'change-id, links, changed lines.';
comment on column patch_keys.key is 'Digest of the kind and the value.';
comment on column patch_keys.at is 'When the patch was sent, in seconds since 1970.';
comment on column patch_keys.ref is 'The patch, as in patch_series.';
comment on column patch_keys.of_posting is
    'True for the key that patches of one posting share.';

create table patch_changes (
    message_id  text not null
);
create index patch_changes_message_id on patch_changes (message_id);

comment on table patch_changes is
    'Messages with patches, and answers, that were added, deleted or changed since patch_series was '
    'last built. Filled by triggers on patches and messages.';
comment on column patch_changes.message_id is 'Message-ID of the message.';
-- No statistics, as for thread_changes.
alter table patch_changes alter message_id set statistics 0;

create function note_patch_changes() returns trigger language plpgsql as $$
begin
    insert into patch_changes select distinct message_id from changed;
    return null;
end $$;
comment on function note_patch_changes() is 'Adds the messages of patches to patch_changes.';

create function note_patch_answers() returns trigger language plpgsql as $$
begin
    insert into patch_changes
    select distinct message_id
      from changed c
     where is_answer or in_reply_to <> '{}' or refs <> '{}'
        or (select true from patches p where p.message_id = c.message_id limit 1);
    return null;
end $$;
comment on function note_patch_answers() is
    'Adds inserted or deleted answers to patch_changes, and messages that have patches already: a '
    'message may come back to the month of its patches.';

create function note_patch_answer_updates() returns trigger language plpgsql as $$
begin
    if not exists (select from changed) then
        return null;
    end if;
    insert into patch_changes
    select distinct message_id
      from (select list, month, message_id, variant, row_hash, refs, in_reply_to, from_email,
                   from_name, arrived_at
              from changed
            except
            select list, month, message_id, variant, row_hash, refs, in_reply_to, from_email,
                   from_name, arrived_at
              from unchanged) n;
    return null;
end $$;
comment on function note_patch_answer_updates() is
    'Adds messages whose references, text or sender changed to patch_changes.';

create trigger patches_inserted after insert on patches
referencing new table as changed
for each statement execute function note_patch_changes();

create trigger patches_deleted after delete on patches
referencing old table as changed
for each statement execute function note_patch_changes();

create trigger patches_updated after update on patches
referencing new table as changed
for each statement execute function note_patch_changes();

create trigger patch_answers_inserted after insert on messages
referencing new table as changed
for each statement execute function note_patch_answers();

create trigger patch_answers_deleted after delete on messages
referencing old table as changed
for each statement execute function note_patch_answers();

create trigger patch_answers_updated after update on messages
referencing old table as unchanged new table as changed
for each statement execute function note_patch_answer_updates();


-- Indexes outside of the database ---------------------------------------------------------------

-- vectors and words are manifests. A row is written before its vector or document and deleted after
-- it, so every key of an index is in its manifest.

create table vectors (
    index_name  text not null,
    key         text not null,
    list        text not null,
    month       text not null,
    digest      bytea not null,
    written     boolean not null,
    primary key (index_name, key)
);
create index vectors_archive on vectors (list, month, index_name);

comment on table vectors is
    'Manifest of the vector indexes: which keys each partition has in an index. The vectors '
    'themselves are in the vector bucket.';
comment on column vectors.index_name is 'URL of the bucket and name of the index.';
comment on column vectors.key is 'Key of the vector, that of its chunk.';
comment on column vectors.list is 'Name of the mailing list.';
comment on column vectors.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column vectors.digest is
    'Digest over text, encoder and metadata of the vector. If it is equal, the vector is not written '
    'again.';
comment on column vectors.written is
    'True once the vector is in the bucket; false while it is about to be written.';

create table words (
    index_name  text not null,
    key         text not null,
    list        text not null,
    month       text not null,
    digest      bytea not null,
    written     boolean not null,
    primary key (index_name, key)
);
create index words_archive on words (list, month, index_name);

comment on table words is
    'Manifest of the word index: which keys each partition has in it. The documents themselves '
    'are in the index that MAIL_WORDS names.';
comment on column words.index_name is 'URL and name of the index.';
comment on column words.key is
    'Key of the document, one per row of messages. The keys of its chunks begin with it.';
comment on column words.list is 'Name of the mailing list.';
comment on column words.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column words.digest is
    'The row_hash of the message that the document was made from; if it differs, the document is '
    'written again.';
comment on column words.written is
    'True once all documents of the month are in the index; false while they are written.';

create table indexes (
    bucket       text not null,
    name         text not null,
    encoder      text not null,
    precision    text not null,
    fingerprint  text not null,
    made_at      timestamptz not null default now(),
    primary key (bucket, name)
);

comment on table indexes is 'Indexes of vectors and of words that were filled from this database.';
comment on column indexes.bucket is
    'URL of the bucket, folder or database, as in MAIL_VECTORS; as in MAIL_WORDS for a word index.';
comment on column indexes.name is 'Name of the index there.';
comment on column indexes.encoder is
    'Encoder of its vectors, as in MAIL_ENCODER; bm25 for a word index.';
comment on column indexes.precision is
    'Precision of that encoder, as in MAIL_PRECISION; exact for a word index.';
comment on column indexes.fingerprint is
    'Fingerprint of everything that determines its vectors; the version of a word index.';
comment on column indexes.made_at is
    'When the index was registered, before its first vector or document was written.';

create table live_indexes (
    bucket  text primary key,
    name    text not null,
    since   timestamptz not null default now(),
    foreign key (bucket, name) references indexes
);

comment on table live_indexes is 'The index of each bucket that search uses.';
comment on column live_indexes.bucket is 'URL of the bucket, as in indexes.';
comment on column live_indexes.name is 'Name of the live index.';
comment on column live_indexes.since is 'When it became live.';

create table promotions (
    bucket    text not null,
    name      text not null,
    replaced  text,
    forced    boolean not null,
    report    jsonb not null,
    at        timestamptz not null default clock_timestamp()
);

comment on table promotions is
    'Each change of a live index: by mail-assets index promote, or by the upkeep of the word index '
    'when an index of another version is complete.';
comment on column promotions.bucket is 'URL of the bucket, as in indexes.';
comment on column promotions.name is 'Name of the index that became live.';
comment on column promotions.replaced is
    'Name of the index that was live before; null if there was none.';
comment on column promotions.forced is
    'True if the index was promoted although it was incomplete or worse.';
comment on column promotions.report is 'Figures of the index at that moment.';
comment on column promotions.at is 'When it was promoted.';


-- Encoders --------------------------------------------------------------------------------------

create table encoder_probes (
    fingerprint  text primary key,
    vector       bytea not null,
    machine      text not null,
    made_at      timestamptz not null default now()
);

comment on table encoder_probes is
    'The vector of a fixed text by each encoder. A machine that computes a different one must not '
    'write to the same index.';
comment on column encoder_probes.fingerprint is 'Fingerprint of the encoder.';
comment on column encoder_probes.vector is 'The vector, float32 in little-endian order.';
comment on column encoder_probes.machine is 'Processor and ONNX Runtime that computed it.';
comment on column encoder_probes.made_at is 'When it was made.';

create table encoded_texts (
    fingerprint  text not null,
    text_hash    bytea not null,
    number       bigint generated always as identity,
    vector       bytea not null,
    primary key (fingerprint, text_hash)
);
create unique index encoded_texts_number on encoded_texts (number);

comment on table encoded_texts is
    'Cache of vectors of chunks that searches encoded to rank the hits of a static index. A missing '
    'vector is computed again.';
comment on column encoded_texts.fingerprint is 'Fingerprint of the encoder that made the vector.';
comment on column encoded_texts.text_hash is 'Digest of the text that was encoded, as in chunks.';
comment on column encoded_texts.number is 'Grows with each row: the lowest are the oldest.';
comment on column encoded_texts.vector is 'The vector, float32 in little-endian order.';
-- Floats do not compress.
alter table encoded_texts alter vector set storage external;


-- Progress --------------------------------------------------------------------------------------

create table partitions (
    asset       text not null,
    list        text,
    month       text,
    inputs      text not null,
    digest      text not null,
    counts      jsonb not null,
    updated_at  timestamptz not null default now(),
    constraint partitions_key unique nulls not distinct (asset, list, month)
);

comment on table partitions is
    'One row per partition of an asset: its inputs and the digest of its content. Equal inputs '
    'mean that a run has nothing to do.';
comment on column partitions.asset is 'Name of the asset.';
comment on column partitions.list is
    'Name of the mailing list; null for an asset without partitions.';
comment on column partitions.month is 'Month, YYYY-MM; null for an asset without partitions.';
comment on column partitions.inputs is
    'Digests of everything that the partition was made from: inputs, settings and versions.';
comment on column partitions.digest is 'Digest of the content of the partition.';
comment on column partitions.counts is 'Counts of the last run that changed the partition.';
comment on column partitions.updated_at is 'When the partition last changed.';

create table month_checks (
    asset       text not null,
    check_name  text not null,
    list        text not null,
    month       text not null,
    updated_at  timestamptz not null,
    passed      boolean not null,
    primary key (asset, check_name, list, month)
);

comment on table month_checks is
    'One row per check of an asset and checked month. A check that passed does not run again until '
    'the month changes.';
comment on column month_checks.asset is 'Name of the asset that is checked.';
comment on column month_checks.check_name is 'Name of the check.';
comment on column month_checks.list is 'Name of the mailing list.';
comment on column month_checks.month is 'Month, YYYY-MM.';
comment on column month_checks.updated_at is
    'partitions.updated_at of the month when it was checked.';
comment on column month_checks.passed is 'True if it passed; false if it failed or warned.';


-- Forgetting ------------------------------------------------------------------------------------

-- Digests with a key that is not in the database, so that no table shows what was forgotten.

create table removals (
    digest      bytea primary key,
    kind        text not null check (kind in ('message', 'sender')),
    reason      text not null,
    removed_by  text not null,
    removed_at  timestamptz not null default now(),
    cut         boolean not null default false
);

comment on table removals is
    'Mail that must stay out of all tables, files and indexes: the entries of mail-assets '
    'forget, as digests.';
comment on column removals.digest is
    'HMAC-SHA-256 of the Message-ID or the address, with the key of the installation. Without the '
    'key, nobody can read or guess them.';
comment on column removals.kind is 'message or sender.';
comment on column removals.reason is 'Why it was removed.';
comment on column removals.removed_by is 'Who removed it.';
comment on column removals.removed_at is 'When it was removed.';
comment on column removals.cut is
    'True if archives are stored without it: forget --archives rewrite.';

create table removed_messages (
    list            text not null,
    month           text not null,
    ordinal         integer not null,
    removal         bytea not null,
    message_digest  bytea,
    key_prefix      text not null,
    primary key (list, month, ordinal)
);

comment on table removed_messages is
    'Messages of an archive that were not loaded because of an entry in removals.';
comment on column removed_messages.list is 'Name of the mailing list.';
comment on column removed_messages.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column removed_messages.ordinal is 'Position in the archive, from 0.';
comment on column removed_messages.removal is 'Digest of the entry in removals.';
comment on column removed_messages.message_digest is
    'Keyed digest of the Message-ID that references must not name; null if the id stays visible.';
comment on column removed_messages.key_prefix is
    'Beginning of the keys of its chunks and vectors, up to the #.';

create table cut_messages (
    list            text not null,
    month           text not null,
    key_prefix      text not null,
    removal         bytea not null,
    message_digest  bytea,
    primary key (list, month, key_prefix)
);

comment on table cut_messages is
    'Messages that the stored archive of the month no longer has: cut out because of an entry in '
    'removals, or lost by the source before or after they were forgotten.';
comment on column cut_messages.list is 'Name of the mailing list.';
comment on column cut_messages.month is 'Month of the archive, YYYY-MM.';
comment on column cut_messages.key_prefix is
    'Beginning of the keys that its chunks and vectors had, up to the #.';
comment on column cut_messages.removal is 'Digest of the entry in removals.';
comment on column cut_messages.message_digest is
    'Keyed digest of the Message-ID that references must not name; null if the id stays visible.';

-- Rights of the reader apply, as in thread_contents.
create view left_out with (security_invoker = true) as
select list, month, removal, message_digest, key_prefix from removed_messages
union
select list, month, removal, message_digest, key_prefix from cut_messages;

comment on view left_out is
    'Messages that months leave out because of an entry in removals, whether the stored archive '
    'has them or not.';
comment on column left_out.list is 'Name of the mailing list.';
comment on column left_out.month is 'Month of the archive, YYYY-MM.';
comment on column left_out.removal is 'Digest of the entry in removals.';
comment on column left_out.message_digest is
    'Keyed digest of the Message-ID that references must not name; null if the id stays visible.';
comment on column left_out.key_prefix is
    'Beginning of the keys of its chunks and vectors, up to the #.';

create table forget_keys (
    one          boolean primary key default true check (one),
    check_value  bytea not null,
    made_at      timestamptz not null default now()
);

comment on table forget_keys is
    'At most one row: identifies the key of the digests in removals and removed_messages. The '
    'key itself is outside the database, in MAIL_FORGET_KEY or MAIL_HOME/forget.key.';
comment on column forget_keys.one is 'Always true: there is one key.';
comment on column forget_keys.check_value is
    'HMAC-SHA-256 of a constant with the key. It identifies a wrong key and does not reveal the '
    'right one.';
comment on column forget_keys.made_at is 'When the digests were first made with it.';


-- Searches that were served ---------------------------------------------------------------------

-- Neither queries nor clients are stored. Servers only insert into served_searches, so that they need
-- no other right to write. The asset search_audit moves the rows.

create table served_searches (
    hour      timestamptz not null,
    surface   text not null,
    mode      text not null,
    fields    text[] not null,
    lists     text[] not null,
    hits      integer not null,
    ms        integer not null,
    status    integer not null,
    searches  integer not null check (searches > 0)
);

comment on table served_searches is
    'Served searches that are not in search_audit yet. Servers only insert rows.';
comment on column served_searches.hour is 'Hour that the searches were asked in, UTC.';
comment on column served_searches.surface is 'page, api, feed, export or mcp.';
comment on column served_searches.mode is
    'hybrid, semantic, fulltext or similar; empty where the search could not be read.';
comment on column served_searches.fields is
    'Names of the fields that were used, such as from or after, without their values.';
comment on column served_searches.lists is 'Known lists that the search was limited to.';
comment on column served_searches.hits is
    'Hits of a page, rounded up: 0, 1, 2, 5, 10, 20, 50 or 100.';
comment on column served_searches.ms is
    'Milliseconds, rounded up to a number that begins with 1, 1.5, 2, 3, 5 or 7.';
comment on column served_searches.status is 'HTTP status.';
comment on column served_searches.searches is 'Number of searches with all these values.';

create table search_audit (
    hour      timestamptz not null,
    surface   text not null,
    mode      text not null,
    fields    text[] not null,
    lists     text[] not null,
    hits      integer not null,
    ms        integer not null,
    status    integer not null,
    searches  bigint not null check (searches > 0),
    primary key (hour, surface, mode, fields, lists, hits, ms, status)
);

comment on table search_audit is
    'One row per hour and kind of search, with the number of served searches. No queries, no '
    'clients.';
comment on column search_audit.hour is 'Hour that the searches were asked in, UTC.';
comment on column search_audit.surface is 'page, api, feed, export or mcp.';
comment on column search_audit.mode is
    'hybrid, semantic, fulltext or similar; empty where the search could not be read.';
comment on column search_audit.fields is
    'Names of the fields that were used, such as from or after, without their values.';
comment on column search_audit.lists is 'Known lists that the search was limited to.';
comment on column search_audit.hits is 'Hits of a page, rounded up: 0, 1, 2, 5, 10, 20, 50 or 100.';
comment on column search_audit.ms is
    'Milliseconds, rounded up to a number that begins with 1, 1.5, 2, 3, 5 or 7.';
comment on column search_audit.status is 'HTTP status.';
comment on column search_audit.searches is 'Number of searches with all these values.';
