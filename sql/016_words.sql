-- The manifest of the word index, as `vectors` is that of the vector index: a row is written before
-- its document and deleted after it.

create table words (
    index_name  text not null,
    key         text not null,
    list        text not null,
    month       text not null,
    digest      bytea not null,
    written     boolean not null,
    primary key (index_name, key)
);

create index words_archive on words (index_name, list, month);

comment on table words is
    'Manifest of the word index: which keys each partition has in it. The documents themselves are '
    'in the index that MAIL_WORDS names.';
comment on column words.index_name is 'URL and name of the index.';
comment on column words.key is
    'Key of the document, one for each row of messages: what the keys of its chunks begin with.';
comment on column words.list is 'Name of the mailing list.';
comment on column words.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column words.digest is
    'The row_hash of the message that the document was made from; another means: write it again.';
comment on column words.written is
    'Whether the index has the document; false from before it is written until all of the month are.';
comment on column indexes.encoder is
    'Encoder that makes its vectors, as in MAIL_ENCODER; bm25 for an index of words.';
comment on column indexes.precision is
    'Precision of that encoder, as in MAIL_PRECISION; exact for an index of words.';
comment on column indexes.fingerprint is
    'Fingerprint of everything that decides what its vectors mean; the version of an index of words.';
