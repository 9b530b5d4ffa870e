-- Digests of what was forgotten are made with a key, which is not in the database.

create table forget_keys (
    one         boolean primary key default true check (one),
    check_value bytea not null,
    made_at     timestamptz not null default now()
);

comment on table forget_keys is
    'At most one row: which key the digests in removals and removed_messages are made with. The '
    'key itself is outside the database, in MAIL_FORGET_KEY or MAIL_HOME/forget.key.';
comment on column forget_keys.one is 'Always true: there is one key.';
comment on column forget_keys.check_value is
    'HMAC-SHA-256 of a constant with the key: tells a wrong key, and does not give it away.';
comment on column forget_keys.made_at is 'When the digests were first made with it.';

comment on column removals.digest is
    'HMAC-SHA-256, with the key of the installation, of a hash of the Message-ID or the address; '
    'without the key neither can be read or guessed from it.';
comment on column removed_messages.message_digest is
    'Keyed digest of the Message-ID that references must not name; null if the id stays visible.';
