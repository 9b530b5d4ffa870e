-- A restore that is under way, or was stopped. Used by tables/unfinished_restore.py, which makes
-- this table and drops it: it is in no migration, so that no dump replaces it.

-- name: create
create table if not exists restoring (
    backup     text not null,
    forgotten  bytea[],
    replaced   boolean not null default false
)

-- name: begin
insert into restoring (backup, forgotten) values (%(backup)s, %(forgotten)s::bytea[])

-- name: mark_replaced
-- In the transaction that replaces the tables by those of a dump.
update restoring set replaced = true where backup = {backup}

-- name: replaced
-- Whether the tables are those of a dump of this backup.
select exists (select from restoring where backup = %(backup)s and replaced)

-- name: forgotten
select forgotten from restoring where forgotten is not null

-- name: end
drop table restoring
