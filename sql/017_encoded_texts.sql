-- Vectors of texts that searches have encoded while the live index is one of precision static.

create table encoded_texts (
    fingerprint  text not null,
    text_hash    bytea not null,
    -- in the order in which they came: the oldest go first
    number       bigint generated always as identity,
    vector       bytea not null,
    primary key (fingerprint, text_hash)
);

create unique index encoded_texts_number on encoded_texts (number);
-- floats do not compress
alter table encoded_texts alter column vector set storage external;

comment on table encoded_texts is
    'Vectors of chunks that searches have encoded to rank what a static index found. A cache: each '
    'is made again where it is missing.';
comment on column encoded_texts.fingerprint is 'Fingerprint of the encoder that made the vector.';
comment on column encoded_texts.text_hash is
    'Digest of the text that was encoded, as in chunks.';
comment on column encoded_texts.number is 'Grows with each row: the lowest are the oldest.';
comment on column encoded_texts.vector is 'The vector, float32 in little-endian order.';
