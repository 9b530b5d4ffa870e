-- Messages that were cut out of the stored archives, where `forget --archives rewrite` asks for it.

alter table removals add column cut boolean not null default false;
comment on column removals.cut is
    'True if archives are stored without it: forget --archives rewrite.';

create table cut_messages (
    list            text not null,
    month           text not null,
    key_prefix      text not null,
    removal         bytea not null,
    message_digest  bytea,
    primary key (list, month, key_prefix)
);

comment on table cut_messages is
    'Messages that a source has and the stored archive of the month has not: cut out because of an '
    'entry in removals.';
comment on column cut_messages.list is 'Name of the mailing list.';
comment on column cut_messages.month is 'Month of the archive, YYYY-MM.';
comment on column cut_messages.key_prefix is
    'What the keys of its chunks and vectors started with, up to the #.';
comment on column cut_messages.removal is 'Digest of the entry in removals.';
comment on column cut_messages.message_digest is
    'Keyed digest of the Message-ID that references must not name; null if the id stays visible.';

-- with the rights of who reads it, not of its owner
create view left_out with (security_invoker = true) as
select list, month, removal, message_digest, key_prefix from removed_messages
union all
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
    'What the keys of its chunks and vectors start with, up to the #.';
