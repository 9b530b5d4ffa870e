-- The tables of the mail database. Every row of a partitioned asset carries (list, month):
-- a partition owns its rows, and nothing else writes them.

create table mbox_archives (
    list            text not null,
    month           text not null check (month ~ '^\d{4}-\d\d$'),
    source          text not null,
    -- key in the archive store; null where the source has no archive for the month
    object          text,
    sha256          text not null default '',
    bytes           bigint not null default 0,
    -- what the source said last: an etag, a date, or size and time of change
    version         text not null default '',
    found           integer not null default 0,
    -- over the messages without their From_ lines, which some servers invent at each download
    content_sha256  text not null default '',
    fetched_at      timestamptz not null default now(),
    primary key (list, month)
);

create table messages (
    list            text not null,
    month           text not null,
    message_id      text not null,
    -- 0 for the first content seen under an id, 1.. for others
    variant         smallint not null,
    content_hash    text not null,
    -- over everything the parser produced, its version included: equal means unchanged
    row_hash        bytea not null,
    ordinal         integer not null,
    archive_offset  bigint not null,
    archive_length  bigint not null,
    sent_at         timestamptz not null,
    date_source     text not null,
    date_raw        text not null,
    subject         text not null,
    subject_base    text not null,
    from_name       text not null,
    from_email      text not null,
    reply_to        text[] not null,
    recipients      text[] not null,
    cc              text[] not null,
    in_reply_to     text[] not null,
    refs            text[] not null,
    list_id         text not null,
    body_kind       text not null,
    body_text       text not null,
    -- [[start, end, kind], ...] in characters of body_text, without gaps
    segments        jsonb not null,
    attachments     jsonb not null,
    identifiers     text[] not null,
    flags           text[] not null,
    -- subject (A), new text (B) and identifiers; computed at insert, because a generated
    -- column is computed for unchanged rows too and cannot take the list's language
    search          tsvector not null,
    primary key (list, month, message_id, variant)
);

create index messages_message_id on messages (message_id);
create index messages_sent_at on messages (sent_at);
create index messages_from_email on messages (lower(from_email));
create index messages_search on messages using gin (search);

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

create table threads (
    message_id         text primary key,
    thread_id          text not null,
    -- nearest ancestor that is archived
    parent_id          text,
    -- direct parent, which may be a ghost
    parent_message_id  text,
    root_id            text not null,
    depth              integer not null,
    position           integer not null,
    is_ghost           boolean not null
);

create index threads_thread_id on threads (thread_id, position);

create table chunks (
    key         text primary key,
    list        text not null,
    month       text not null,
    message_id  text not null,
    variant     smallint not null,
    index       integer not null,
    text        text not null,
    -- start, end, start, end, ... in characters of messages.body_text
    spans       integer[] not null,
    tokens      integer not null,
    -- sha256 of what the encoder sees: the subject and the text
    text_hash   bytea not null
);

create index chunks_archive on chunks (list, month);
create index chunks_message_id on chunks (message_id);
-- finds the vector of a text that another partition has encoded already
create index chunks_text_hash on chunks (text_hash);

-- The keys a partition means to have in an index. A row is written before its vector, and
-- deleted after it: a key that is in the bucket is always in the manifest.
create table vectors (
    index_name  text not null,
    key         text not null,
    list        text not null,
    month       text not null,
    -- over the text, the encoder and the metadata of the vector
    digest      bytea not null,
    written     boolean not null,
    primary key (index_name, key)
);

create index vectors_archive on vectors (index_name, list, month);

-- What each partition of each asset was made from and what came out: equal inputs mean
-- that there is nothing to do.
create table partitions (
    asset       text not null,
    list        text not null,
    month       text not null,
    inputs      text not null,
    digest      text not null,
    counts      jsonb not null,
    updated_at  timestamptz not null default now(),
    primary key (asset, list, month)
);
