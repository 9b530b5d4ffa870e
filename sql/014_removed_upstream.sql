-- What archives no longer hold: the messages, and the files that still have them.

alter table mbox_archives add column list_id text not null default '';

comment on column mbox_archives.list_id is
    'List-Id of most of its messages; empty if most name none.';

create table removed_upstream (
    list        text not null,
    month       text not null,
    -- of the Message-ID, or of sender, date and subject where there is none
    digest      text not null,
    message_id  text not null,
    former_key  text not null,
    noticed_at  timestamptz not null default now(),
    primary key (list, month, digest)
);

create index removed_upstream_message_id on removed_upstream (message_id);

comment on table removed_upstream is
    'Messages that the archive of a month held once and holds no more.';
comment on column removed_upstream.list is 'Name of the mailing list.';
comment on column removed_upstream.month is 'Month of the archive, YYYY-MM.';
comment on column removed_upstream.digest is
    'SHA-256 of the Message-ID; of sender, date and subject where there is none.';
comment on column removed_upstream.message_id is 'Message-ID; empty if the message has none.';
comment on column removed_upstream.former_key is
    'Key in the archive store of the former archive, which has the message.';
comment on column removed_upstream.noticed_at is 'When the loss was noticed.';

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
