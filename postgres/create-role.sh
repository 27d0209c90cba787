#!/bin/sh
# Runs once, when the official image makes its data directory: the backend's role is not a
# superuser, so that it can't use up the connections reserved for repair.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$POSTGRES_PASSWORD" --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE hotel LOGIN PASSWORD :'password';
CREATE DATABASE hotel OWNER hotel;
SQL
