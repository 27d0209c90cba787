#!/bin/bash
# Run Redis as its user, with every module of the image.
set -e

case ${1:-} in -* | *.conf) set -- redis-server "$@" ;; esac
[ "$1" = redis-server ] || exec "$@"

if [ "$(id -u)" = 0 ]; then
    find . \! -user redis -exec chown redis {} +
    exec setpriv --reuid=redis --regid=redis --clear-groups --no-new-privs "$0" "$@"
fi

[ "$(umask)" != 0022 ] || umask 0077
echo "Starting Redis Server"
for module in /usr/local/lib/redis/modules/*.so; do
    [ ! -x "$module" ] || set -- "$@" --loadmodule "$module"
done
exec "$@"
