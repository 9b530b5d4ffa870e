-- Parts of subjects, receivers and names of attached files, found without reading every message. A
-- server without pg_trgm answers the same, by reading the table.

create function like_pattern(part text) returns text
    language sql immutable strict parallel safe
    return '%' || replace(replace(replace(lower(part), '\', '\\'), '%', '\%'), '_', '\_') || '%';
comment on function like_pattern(text) is
    'The LIKE pattern of texts in lower case that contain this one, in any case.';

create function join_receivers(recipients text[], cc text[]) returns text
    language sql immutable strict parallel safe
    return lower(array_to_string(recipients || cc, e'\n'));
comment on function join_receivers(text[], text[]) is
    'All receivers of a message as one text in lower case, for an index.';

create function join_file_names(attachments jsonb) returns text
    language sql immutable strict parallel safe
    return (select lower(coalesce(string_agg(a.one ->> 'name', e'\n'), ''))
              from jsonb_array_elements(attachments) as a (one));
comment on function join_file_names(jsonb) is
    'The names of the attached files of a message as one text in lower case, for an index.';

do $$
begin
    if exists (select from pg_extension where extname = 'pg_trgm') then
        create index messages_subject on messages using gin (lower(subject) gin_trgm_ops);
        create index messages_receivers on messages
            using gin (join_receivers(recipients, cc) gin_trgm_ops);
        create index messages_file_names on messages
            using gin (join_file_names(attachments) gin_trgm_ops) where attachments <> '[]';
    end if;
end $$;
