#!/bin/sh
# Run or source the scripts of /docker-entrypoint.d in the order of their names, then run the command.
set -e

if [ "$1" = nginx ] || [ "$1" = nginx-debug ]; then
    for script in $(find /docker-entrypoint.d -follow -type f | sort -V); do
        if [ ! -x "$script" ]; then
            echo "$0: Ignoring $script, not executable"
            continue
        fi
        case $script in
            *.envsh)
                # shellcheck source=/dev/null
                . "$script"
                ;;
            *.sh) "$script" ;;
            *) echo "$0: Ignoring $script" ;;
        esac
    done
fi
exec "$@"
