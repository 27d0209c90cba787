#!/bin/sh
# Render every template with the variables that the filter allows.
set -e

from=${NGINX_ENVSUBST_TEMPLATE_DIR:-/etc/nginx/templates}
to=${NGINX_ENVSUBST_OUTPUT_DIR:-/etc/nginx/conf.d}
suffix=${NGINX_ENVSUBST_TEMPLATE_SUFFIX:-.template}

[ -d "$from" ] || exit 0
if [ ! -w "$to" ]; then
    echo "$0: ERROR: $from exists, but $to is not writable"
    exit 0
fi
names=$(env | cut -d= -f1 | grep -E "${NGINX_ENVSUBST_FILTER:-}" | sed 's/.*/${&}/')
find "$from" -follow -type f -name "*$suffix" | while read -r template; do
    name=${template#"$from/"}
    mkdir -p "$to/$(dirname "$name")"
    envsubst "$names" < "$template" > "$to/${name%"$suffix"}"
done
