-- What a new server of compose.yaml needs besides the database `mail`: Dagster's own storage.
create database dagster;
