-- What each table and column holds: for \d+, for tools that read the catalog, and for Dagster's UI,
-- which shows these sentences beside the columns of an asset.

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
    'What the source reported as the version of its file: an ETag, a date, or size and '
    'modification time.';
comment on column mbox_archives.found is 'Number of messages in the archive.';
comment on column mbox_archives.content_sha256 is
    'SHA-256 over the messages without their From_ lines: equal means that nothing has changed.';
comment on column mbox_archives.fetched_at is 'When the row was last written.';

comment on table messages is
    'One row per message, list and month, as parsed from the archive. A message posted to three '
    'lists has three rows.';
comment on column messages.list is 'Name of the mailing list.';
comment on column messages.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column messages.message_id is
    'Message-ID without angle brackets; generated if the message has none.';
comment on column messages.variant is
    '0 for the first content with this Message-ID in the archive, 1 and up for different contents '
    'with the same one.';
comment on column messages.content_hash is
    'SHA-256 of the content, in hexadecimal: equal in copies of one message.';
comment on column messages.row_hash is
    'SHA-256 over the row and the version of the parser: equal means that the row is not written '
    'again.';
comment on column messages.ordinal is 'Position in the archive, from 0.';
comment on column messages.archive_offset is
    'First byte of the message in the uncompressed archive.';
comment on column messages.archive_length is
    'Length of the message in the uncompressed archive, in bytes.';
comment on column messages.sent_at is
    'When the message was sent: from its Date field, repaired where needed.';
comment on column messages.date_source is
    'Where sent_at comes from: date, received, from_line or archive_month.';
comment on column messages.date_raw is 'The Date field as written.';
comment on column messages.subject is 'Decoded subject.';
comment on column messages.subject_base is 'Subject without list tags and reply prefixes.';
comment on column messages.from_name is 'Display name of the author.';
comment on column messages.from_email is 'Address of the author.';
comment on column messages.reply_to is 'Reply-To addresses, as "Name <address>".';
comment on column messages.recipients is 'To addresses, as "Name <address>".';
comment on column messages.cc is 'Cc addresses, as "Name <address>".';
comment on column messages.in_reply_to is 'Message-IDs from the In-Reply-To field.';
comment on column messages.refs is 'Message-IDs from the References field, oldest first.';
comment on column messages.list_id is 'List-Id in lower case; empty if the message names no list.';
comment on column messages.body_kind is 'Which part body_text was read from: plain, html or none.';
comment on column messages.body_text is
    'Body as plain text, quotes and signatures included. Spans and citations count its '
    'characters.';
comment on column messages.segments is
    'What each part of body_text is, without gaps: [[start, end, kind], ...] in characters; kind '
    'is text, quote, attribution, signature, footer or patch.';
comment on column messages.attachments is
    'Attached files: name, type, size, sha256, is_patch, and the text of patches.';
comment on column messages.identifiers is
    'Names of files, functions, parameters and error codes in the new text and patches, found by '
    'exact search.';
comment on column messages.flags is
    'Repairs and oddities of the message, such as generated_id, date_repaired or truncated.';
comment on column messages.search is
    'Full-text vector: subject (weight A), new text (B) and identifiers, in the language of the '
    'list.';

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

comment on table threads is
    'One row per message of a thread, over all lists and months. A ghost is a message that others '
    'refer to and no archive holds.';
comment on column threads.message_id is 'Message-ID of the message or ghost.';
comment on column threads.thread_id is 'The smallest Message-ID in the thread, ghosts included.';
comment on column threads.parent_id is
    'The nearest ancestor that is archived; null if there is none.';
comment on column threads.parent_message_id is
    'The direct parent, which may be a ghost; null at the top of a thread.';
comment on column threads.root_id is 'The topmost ancestor, which may be a ghost.';
comment on column threads.depth is 'Number of archived ancestors.';
comment on column threads.position is 'Position in the thread in pre-order, from 0.';
comment on column threads.is_ghost is 'True if no archive holds the message.';

comment on table thread_aliases is
    'Message-IDs that lead to a thread without being part of it, so that links to a thread keep '
    'working.';
comment on column thread_aliases.id is 'Message-ID that is not in threads.';
comment on column thread_aliases.message_id is 'A message of the thread that the id leads to.';
comment on column thread_aliases.named is
    'True if a message of the thread refers to the id; false if the id was part of the thread '
    'before.';

comment on table thread_changes is
    'Messages that were added, deleted or changed their references since threads were last built. '
    'Filled by triggers on messages.';
comment on column thread_changes.message_id is 'Message-ID of the message.';

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
comment on column chunks.text is 'Text of the chunk: exactly what its spans cut out of the body.';
comment on column chunks.spans is
    'Where the text stands in messages.body_text: start, end, start, end, ... in characters.';
comment on column chunks.tokens is 'Number of tokens that the encoder reads, with the subject.';
comment on column chunks.text_hash is
    'SHA-256 of what the encoder reads, the subject and the text: chunks with equal hashes share '
    'a vector.';

comment on table vectors is
    'Manifest of the vector indexes: which keys each partition has in an index. The vectors '
    'themselves are in the vector bucket.';
comment on column vectors.index_name is 'URL of the bucket and name of the index.';
comment on column vectors.key is 'Key of the vector, that of its chunk.';
comment on column vectors.list is 'Name of the mailing list.';
comment on column vectors.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column vectors.digest is
    'Digest over text, encoder and metadata of the vector: equal means that it is not written '
    'again.';
comment on column vectors.written is
    'True once the vector is in the bucket; false while it is about to be written.';

comment on table partitions is
    'One row per partition of an asset: what it was made from and what came out. Equal inputs '
    'mean that a run has nothing to do.';
comment on column partitions.asset is 'Name of the asset.';
comment on column partitions.list is
    'Name of the mailing list; null for an asset without partitions.';
comment on column partitions.month is 'Month, YYYY-MM; null for an asset without partitions.';
comment on column partitions.inputs is
    'What the partition was made from: digests of its inputs, settings and versions.';
comment on column partitions.digest is 'Digest of the content of the partition.';
comment on column partitions.counts is 'Figures of the last run that changed the partition.';
comment on column partitions.updated_at is 'When the partition last changed.';

comment on table removals is
    'What must stay out of all tables, files and indexes: the entries that mail-assets forget '
    'made, as digests.';
comment on column removals.digest is
    'Digest of the Message-ID or the address; neither can be read from it.';
comment on column removals.kind is 'message or sender.';
comment on column removals.reason is 'Why it was removed.';
comment on column removals.removed_by is 'Who removed it.';
comment on column removals.removed_at is 'When it was removed.';

comment on table removed_messages is
    'Messages that an archive holds and that were not loaded because of an entry in removals.';
comment on column removed_messages.list is 'Name of the mailing list.';
comment on column removed_messages.month is 'Month of the archive that holds the message, YYYY-MM.';
comment on column removed_messages.ordinal is 'Position in the archive, from 0.';
comment on column removed_messages.removal is 'Digest of the entry in removals.';
comment on column removed_messages.message_digest is
    'SHA-256 of the Message-ID that references must not name; null if the id stays visible.';
comment on column removed_messages.key_prefix is
    'What the keys of its chunks and vectors start with, up to the #.';

comment on table indexes is 'Vector indexes that were filled from this database.';
comment on column indexes.bucket is 'URL of the vector bucket, as in MAIL_VECTORS.';
comment on column indexes.name is 'Name of the index in the bucket.';
comment on column indexes.encoder is 'Encoder that makes its vectors, as in MAIL_ENCODER.';
comment on column indexes.precision is 'Precision of the encoder, as in MAIL_PRECISION.';
comment on column indexes.fingerprint is
    'Fingerprint of everything that decides what its vectors mean.';
comment on column indexes.made_at is
    'When the index was registered, before its first vector was written.';

comment on table live_indexes is 'The index of each bucket that search uses.';
comment on column live_indexes.bucket is 'URL of the vector bucket.';
comment on column live_indexes.name is 'Name of the live index.';
comment on column live_indexes.since is 'When it became live.';

comment on table promotions is
    'History of mail-assets index promote: every switch of the live index.';
comment on column promotions.bucket is 'URL of the vector bucket.';
comment on column promotions.name is 'Name of the index that became live.';
comment on column promotions.replaced is
    'Name of the index that was live before; null if there was none.';
comment on column promotions.forced is
    'True if the index was promoted although it was incomplete or worse.';
comment on column promotions.report is 'What was measured of the index at that moment.';
comment on column promotions.at is 'When it was promoted.';

comment on table schema_migrations is
    'Migrations (sql/NNN_NAME.sql) that were applied to this database.';
comment on column schema_migrations.number is 'Number of the migration.';
comment on column schema_migrations.name is 'Name of the migration.';
comment on column schema_migrations.sha256 is 'SHA-256 of its file.';
comment on column schema_migrations.applied_at is 'When it was applied.';
