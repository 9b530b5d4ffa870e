-- Which checks have passed on what a month holds now: they need not look at it again, and a month
-- that has not been checked as it is is not done.

create table passed_checks (
    asset       text not null,
    check_name  text not null,
    list        text not null,
    month       text not null,
    updated_at  timestamptz not null,
    primary key (asset, check_name, list, month)
);

comment on table passed_checks is
    'One row per check of an asset and month that has passed: not to be run again until the month '
    'changes.';
comment on column passed_checks.asset is 'Name of the asset that is checked.';
comment on column passed_checks.check_name is 'Name of the check.';
comment on column passed_checks.list is 'Name of the mailing list.';
comment on column passed_checks.month is 'Month, YYYY-MM.';
comment on column passed_checks.updated_at is
    'partitions.updated_at of the month that the check has looked at.';
