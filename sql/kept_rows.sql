-- Rows that a backup keeps, and the state of a restore. Used by tables/kept_rows.py, which explains
-- why each table is kept.

-- name: snapshot
-- All tables as of one moment.
set transaction isolation level repeatable read

-- name: export_snapshot
-- Gives the same snapshot to another session, until this transaction ends.
select pg_export_snapshot()

-- name: migration
select max(number) from schema_migrations

-- name: table_exists
-- Before a restore a database may be empty. Other schemas of the search path are not ours.
select to_regclass(format('%%I.%%I', current_schema(), %(table)s::text)) is not null

-- name: analyze
-- A dump has no statistics, and without them plans are bad.
analyze

-- name: has_archives
select exists (select from mbox_archives)

-- name: forget_keys
copy (select * from forget_keys)
to stdout (format csv, header)

-- name: removals
copy (select * from removals order by digest)
to stdout (format csv, header)

-- name: removed_messages
copy (select * from removed_messages order by list, month, ordinal)
to stdout (format csv, header)

-- name: cut_messages
copy (select * from cut_messages order by list, month, key_prefix)
to stdout (format csv, header)

-- name: removed_upstream
copy (select * from removed_upstream order by list, month, digest)
to stdout (format csv, header)

-- name: former_archives
copy (select * from former_archives order by object_key)
to stdout (format csv, header)

-- name: mbox_archives
copy (select * from mbox_archives order by list, month)
to stdout (format csv, header)

-- name: partitions
-- States of archives; all other assets are made again.
copy (select * from partitions where asset = 'mbox_archives' order by list, month)
to stdout (format csv, header)

-- name: promotions
copy (select * from promotions order by at)
to stdout (format csv, header)

-- name: thread_aliases
-- Aliases that cannot be derived from messages.
copy (select * from thread_aliases where not named order by id)
to stdout (format csv, header)

-- name: stage
create temporary table kept_rows_stage (like {table} including defaults) on commit drop

-- name: copy
copy kept_rows_stage from stdin (format csv, header match)

-- name: merge
-- Existing rows stay. No conflict target, because some tables have no key.
insert into {table}
select * from kept_rows_stage
except
select * from {table}
on conflict do nothing

-- name: cut_too
-- Removals that exist here already, and whose mail was cut out of archives elsewhere.
update removals r
   set cut = true
  from kept_rows_stage s
 where s.digest = r.digest and s.cut and not r.cut

-- name: merge_removed
-- Messages in the archives of another home that removals of this home keep out.
insert into cut_messages (list, month, key_prefix, removal, message_digest)
select s.list, s.month, s.key_prefix, s.removal, s.message_digest
  from kept_rows_stage s
  join removals on removals.digest = s.removal
on conflict do nothing

-- name: drop_stage
drop table kept_rows_stage

-- name: other_key
-- True if the new digests were made with another key than the existing ones.
select exists (
    select from kept_rows_stage s, forget_keys k where s.check_value <> k.check_value)

-- name: clear
-- Drops everything that the schema and migrations have created, and the views of mail_public over the
-- tables. Tables that a dump does not name, and functions that later migrations create, would
-- conflict.
do $$
declare
    schema constant oid := to_regnamespace(quote_ident(current_schema()));
    tables constant oid[] := array(
        select oid from pg_class
         where relnamespace = schema and relkind = 'r' and relname = any({tables}));
    one text;
begin
    -- one statement, because views depend on each other
    one := (
        select 'drop view ' || string_agg(v.oid::regclass::text, ', ')
          from pg_class v
         where v.relkind = 'v'
           and (v.relnamespace = schema and v.relname in (
                     'left_out', 'thread_contents', 'shown_messages', 'shown_texts',
                     'shown_summaries', 'applied_parts', 'mixed_patch_states',
                     'shown_patch_states', 'changed_standing')
                or v.relnamespace = to_regnamespace('mail_public')
                   and exists (
                       select from pg_rewrite r
                         join pg_depend d
                           on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
                        where r.ev_class = v.oid and d.refclassid = 'pg_class'::regclass
                          and d.refobjid = any(tables))));
    if one is not null then
        execute one;
    end if;
    -- these functions depend on the tables: their arguments are row types
    drop function if exists
        message_checksum, summary_checksum, archive_checksum, entry_checksum;
    for one in
        select format('drop function %s', f.signature)
          from unnest(array[
                   'first_copy(text)', 'first_shown(text)', 'find_contested(text[])',
                   'shown_node(text, text[])', 'shown_thread_id(text, text[])',
                   'shown_thread(text, text[])', 'shown_ids(text[], text[])',
                   'is_closed(text, text[])', 'hides_lists(text[])', 'has_standing(text, text[])',
                   'shown_lists()']) as n (name)
         cross join lateral to_regprocedure(format('%I.%s', current_schema(), n.name))
               as f (signature)
         where f.signature is not null
    loop
        execute one;
    end loop;
    if cardinality(tables) > 0 then
        execute (select 'drop table ' || string_agg(t::regclass::text, ', ')
                   from unnest(tables) as t);
    end if;
    for one in
        select format('drop function %s', f.signature)
          from unnest(array[
                   'note_lists()', 'note_thread_changes()', 'note_thread_updates()',
                   'note_patch_changes()', 'note_patch_answers()', 'note_patch_answer_updates()',
                   'like_pattern(text)',
                   'fold_name(text)', 'join_receivers(text[], text[])', 'join_file_names(jsonb)',
                   'list_changed_names(jsonb)',
                   'changes_file(text, text, text)',
                   'note_senders()',
                   'forget_senders()', 'note_summary_messages()', 'drop_summaries_of_messages()',
                   'note_summary_threads()', 'drop_summaries_of_threads()',
                   'set_message_checksum()', 'set_summary_checksum()',
                   'set_archive_checksum()', 'set_entry_checksum()', 'settle_contested()',
                   'drop_contested_summaries()', 'drop_links_of_messages()', 'drop_links_of_commits()',
                   'find_patch_states(text[], text[])', 'settle_patch_states(text[])',
                   'lock_patch_states()', 'settle_states_of_series()', 'settle_states_of_updated()',
                   'settle_states_of_links()', 'settle_states_of_messages()',
                   'settle_states_of_commits()',
                   'note_contested_patches()', 'break_tie(text, text, smallint)',
                   'count_new_text(jsonb)', 'message_key(text, text, text, smallint, text)'])
               as n (name)
         cross join lateral to_regprocedure(format('%I.%s', current_schema(), n.name))
               as f (signature)
         where f.signature is not null
    loop
        execute one;
    end loop;
end $$

-- name: index_again
-- The manifests of a dump describe indexes that are elsewhere or gone.
truncate vectors, words, live_indexes, indexes

-- name: forget_index_states
delete from partitions where asset in ('vectors', 'words')

-- name: archive_files
-- Files of archives and of former archives.
select object_key from mbox_archives where object_key is not null
union
select object_key from former_archives
 order by 1

-- name: create_restoring
create table if not exists restoring (
    backup     text not null,
    forgotten  bytea[],
    replaced   boolean not null default false
)

-- name: begin_restore
insert into restoring (backup, forgotten) values (%(backup)s, %(forgotten)s::bytea[])

-- name: mark_replaced
-- Part of the transaction that replaces the tables with those of a dump.
update restoring set replaced = true where backup = {backup}

-- name: is_replaced
-- True if the tables are those of the backup's dump.
select exists (select from restoring where backup = %(backup)s and replaced)

-- name: forgotten_before
select forgotten from restoring where forgotten is not null

-- name: end_restore
drop table restoring
