-- What a row says of attached files and messages. Rows of former parsers, which hold the text of
-- patches too, are written again when their months are next loaded.

comment on column messages.attachments is
    'Attached files in the order of the message: position (from 1), name, type, size, sha256 of '
    'the decoded content, is_patch. The bytes are in the archive: `mail-assets show --attachment`.';
comment on column messages.body_text is
    'Body as plain text, quotes and signatures included; the texts of attached messages follow, '
    'each behind its author, date and subject. Spans and citations count its characters.';
comment on column messages.body_kind is
    'Which part body_text was read from: plain, enriched, html, calendar or none.';
