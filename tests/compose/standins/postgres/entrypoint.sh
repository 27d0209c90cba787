#!/bin/bash
# Create the data directory the first time, run the project's scripts, then run Postgres.
set -euo pipefail
[ "$1" = postgres ] || exec "$@"

if [ "$(id -u)" = 0 ]; then
    # Read the password as root: Postgres's user can't read the file.
    export POSTGRES_PASSWORD="${POSTGRES_PASSWORD:-$(cat "$POSTGRES_PASSWORD_FILE")}"
    unset POSTGRES_PASSWORD_FILE
    install -d -o postgres -g postgres -m 700 "$PGDATA"
    chown postgres:postgres /var/run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

export POSTGRES_USER="${POSTGRES_USER:-postgres}"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # Started as user 999, the folder does not exist yet.
    install -d -m 700 "$PGDATA"
    POSTGRES_PASSWORD="${POSTGRES_PASSWORD:-$(cat "$POSTGRES_PASSWORD_FILE")}"
    # shellcheck disable=SC2086 # several arguments in one variable, as the official image takes them
    initdb --username "$POSTGRES_USER" --pwfile <(echo "$POSTGRES_PASSWORD") ${POSTGRES_INITDB_ARGS:-}
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    # Listen only on the Unix socket until the scripts have run.
    pg_ctl -w start -o "${*:2} -c listen_addresses=''"
    for script in /docker-entrypoint-initdb.d/*.sh; do
        [ -e "$script" ] || continue
        # shellcheck disable=SC1090
        . "$script"
    done
    pg_ctl -w -m fast stop
fi
unset POSTGRES_PASSWORD
exec "$@"
