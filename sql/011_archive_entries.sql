-- Positions in the archive are no part of a message: one more message on top moves all others and
-- changes none. They get a table of their own, which also says what became of each message found,
-- and what is known of its bytes, so that the same bytes are not parsed again.

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
    primary key (list, month, ordinal)
);

-- A row of messages has one place in its archive.
create unique index archive_entries_stored on archive_entries (list, month, message_id, variant)
 where outcome = 'stored';

comment on table archive_entries is
    'One row per message found in an archive: where its bytes are and what became of it. Positions '
    'are those of the file that messages were last read from.';
comment on column archive_entries.list is 'Name of the mailing list.';
comment on column archive_entries.month is 'Month of the archive, YYYY-MM.';
comment on column archive_entries.ordinal is 'Position in the archive, from 0.';
comment on column archive_entries.archive_offset is
    'First byte of the message in the uncompressed archive.';
comment on column archive_entries.archive_length is
    'Length of the message in the uncompressed archive, in bytes.';
comment on column archive_entries.digest is
    'BLAKE2b digest of the bytes that the message was read from, its From_ line only where the date '
    'was taken from it: bytes with a known digest are not parsed again.';
comment on column archive_entries.outcome is
    'What became of it: stored (in messages), duplicate (of the message named), quarantined or '
    'removed.';
comment on column archive_entries.message_id is
    'Message-ID, also of what it duplicates; null if quarantined or removed.';
comment on column archive_entries.variant is
    'Variant of the message, also of what it duplicates; null if quarantined or removed.';
comment on column archive_entries.content_hash is
    'SHA-256 of its content, in hexadecimal; null if quarantined or removed.';
comment on column archive_entries.outline is
    'Digest of its content without the letters that pipermail may have lost; null in other '
    'dialects.';
comment on column archive_entries.ending is
    'Hashes of its last lines, from which footers and signatures of the month are learnt.';

-- The next load reads all bytes again and fills in what is known of them.
insert into archive_entries
       (list, month, ordinal, archive_offset, archive_length, digest, outcome, message_id, variant,
        content_hash)
select list, month, ordinal, archive_offset, archive_length, '', 'stored', message_id, variant,
       content_hash
  from messages;

insert into archive_entries
       (list, month, ordinal, archive_offset, archive_length, digest, outcome)
select list, month, ordinal, archive_offset, archive_length, '', 'quarantined'
  from quarantine
on conflict do nothing;

alter table messages drop column ordinal, drop column archive_offset, drop column archive_length;

comment on column messages.row_hash is
    'SHA-256 over what the row was made from: the bytes of the message, the versions that read '
    'them, the variant and the ending that was learnt. Equal means that it is not written again.';
