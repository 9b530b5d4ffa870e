-- What `indexes` and `live_indexes` say of vectors holds for words too, whose indexes they have
-- since 016.

comment on table indexes is 'Indexes of vectors and of words that were filled from this database.';
comment on column indexes.bucket is
    'URL of the place that holds it: as in MAIL_VECTORS, or as in MAIL_WORDS for an index of '
    'words.';
comment on column indexes.name is 'Name of the index in that place.';
comment on column indexes.made_at is
    'When the index was registered, before its first vector or document was written.';

comment on table live_indexes is 'The index of each place that search uses.';
comment on column live_indexes.bucket is 'URL of the place, as in indexes.';

comment on table promotions is
    'Every switch of a live index: by mail-assets index promote, or by the upkeep of the word '
    'index where one of another version is complete.';
comment on column promotions.bucket is 'URL of the place, as in indexes.';
