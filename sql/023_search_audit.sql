-- How many searches there were, of what kind and how quick: without what was asked, and by whom.
-- What serves only adds to served_searches; the asset search_audit takes the rows from there, so
-- that a role which may read mail and add rows there is all that serving needs.

create table served_searches (
    hour      timestamptz not null,
    surface   text not null,
    mode      text not null,
    fields    text[] not null,
    lists     text[] not null,
    hits      integer not null,
    ms        integer not null,
    status    integer not null,
    searches  integer not null check (searches > 0)
);

comment on table served_searches is
    'Searches that were served and are not in search_audit yet: rows are only added.';
comment on column served_searches.hour is 'Hour that the searches were asked in, UTC.';
comment on column served_searches.surface is 'What was asked: page, api, feed, export or mcp.';
comment on column served_searches.mode is
    'hybrid, semantic, fulltext or similar; empty where the search could not be read.';
comment on column served_searches.fields is
    'Names of the fields that were used, such as from or after, without their values.';
comment on column served_searches.lists is 'Known lists that the search was limited to.';
comment on column served_searches.hits is
    'Hits of a page, rounded up: 0, 1, 2, 5, 10, 20, 50 or 100.';
comment on column served_searches.ms is
    'Milliseconds, rounded up to a number that begins with 1, 1.5, 2, 3, 5 or 7.';
comment on column served_searches.status is 'HTTP status: 200, or what was wrong.';
comment on column served_searches.searches is 'Searches that agree in all of this.';

create table search_audit (
    hour      timestamptz not null,
    surface   text not null,
    mode      text not null,
    fields    text[] not null,
    lists     text[] not null,
    hits      integer not null,
    ms        integer not null,
    status    integer not null,
    searches  bigint not null check (searches > 0),
    primary key (hour, surface, mode, fields, lists, hits, ms, status)
);

comment on table search_audit is
    'One row per hour and kind of search: how many were served. No query, no client.';
comment on column search_audit.hour is 'Hour that the searches were asked in, UTC.';
comment on column search_audit.surface is 'What was asked: page, api, feed, export or mcp.';
comment on column search_audit.mode is
    'hybrid, semantic, fulltext or similar; empty where the search could not be read.';
comment on column search_audit.fields is
    'Names of the fields that were used, such as from or after, without their values.';
comment on column search_audit.lists is 'Known lists that the search was limited to.';
comment on column search_audit.hits is
    'Hits of a page, rounded up: 0, 1, 2, 5, 10, 20, 50 or 100.';
comment on column search_audit.ms is
    'Milliseconds, rounded up to a number that begins with 1, 1.5, 2, 3, 5 or 7.';
comment on column search_audit.status is 'HTTP status: 200, or what was wrong.';
comment on column search_audit.searches is 'Searches that agree in all of this.';
