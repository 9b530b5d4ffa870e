-- The indexes that were filled in a bucket, what made their vectors, and which of them search
-- asks. `bucket` is its URL, as MAIL_VECTORS has it.

create table indexes (
    bucket       text not null,
    name         text not null,
    encoder      text not null,
    precision    text not null,
    fingerprint  text not null,
    made_at      timestamptz not null default now(),
    primary key (bucket, name)
);

-- The one place where search looks.
create table live_indexes (
    bucket  text primary key,
    name    text not null,
    since   timestamptz not null default now(),
    foreign key (bucket, name) references indexes
);

-- Every switch, and what was known of the index when it was made.
create table promotions (
    bucket    text not null,
    name      text not null,
    replaced  text,
    forced    boolean not null,
    report    jsonb not null,
    at        timestamptz not null default clock_timestamp()
);
