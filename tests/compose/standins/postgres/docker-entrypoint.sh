#!/bin/bash
# Create the data directory the first time, run the project's scripts, then run Postgres.
set -euo pipefail

case ${1:-} in -*) set -- postgres "$@" ;; esac
[ "$1" = postgres ] || exec "$@"

fail() {
    echo "Error: $1" >&2
    exit 1
}

# The value of variable $1, or the content of the file that ${1}_FILE names.
value_of() {
    local file=${1}_FILE
    if [ -n "${!file:-}" ]; then cat "${!file}"; else echo "${!1:-$2}"; fi
}

create_data_directory() {
    local auth=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
    [ -n "$password" ] || [ "$auth" = trust ] \
        || fail "Database is uninitialized and superuser password is not specified."
    # shellcheck disable=SC2086 # several arguments in one variable
    initdb --username "$user" --pwfile <(echo "$password") ${POSTGRES_INITDB_ARGS:-}
    printf '\nhost all all all %s\n' "$auth" >> "$PGDATA/pg_hba.conf"
}

run_script() {
    echo "$0: running $1"
    case $1 in
        *.sh)
            # shellcheck source=/dev/null
            if [ -x "$1" ]; then "$1"; else . "$1"; fi
            ;;
        *.sql) psql -v ON_ERROR_STOP=1 --username "$user" --no-password --dbname "$database" -f "$1" ;;
        *) echo "$0: ignoring $1" ;;
    esac
}

install -d -m 700 "$PGDATA" 2>/dev/null || true
if [ "$(id -u)" = 0 ]; then
    chown -R postgres:postgres "$PGDATA" /var/run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

user=$(value_of POSTGRES_USER postgres)
password=$(value_of POSTGRES_PASSWORD "")
database=$(value_of POSTGRES_DB "$user")
if [ -s "$PGDATA/PG_VERSION" ]; then
    echo "PostgreSQL Database directory appears to contain a database; Skipping initialization"
elif [ -s /var/lib/postgresql/data/PG_VERSION ]; then
    # From version 18 on: the data of an older image lies where it would be ignored.
    fail "there is PostgreSQL data in /var/lib/postgresql/data"
else
    create_data_directory
    # Listen only on the Unix socket until the scripts have run.
    pg_ctl -w start -o "${*:2} -c listen_addresses=''"
    export PGHOST='' PGHOSTADDR=''
    [ "$database" = postgres ] || createdb --username "$user" "$database"
    for script in /docker-entrypoint-initdb.d/*; do
        [ ! -e "$script" ] || run_script "$script"
    done
    unset PGHOST PGHOSTADDR
    pg_ctl -w -m fast stop
fi
unset POSTGRES_PASSWORD
exec "$@"
