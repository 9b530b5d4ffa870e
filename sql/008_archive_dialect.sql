-- The dialect of each archive, as declared in lists.toml or found in its bytes; empty for an
-- archive that was fetched before this migration, until it is fetched again.

alter table mbox_archives
    add column dialect text not null default '',
    add column found_dialect text not null default '';

comment on column mbox_archives.dialect is
    'How the archive was written and is read: as lists.toml says, else as found_dialect.';
comment on column mbox_archives.found_dialect is
    'How the archive seems to be written, by its bytes.';
