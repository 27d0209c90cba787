#!/bin/bash
# Render every template with the variables that the filter allows, then run Nginx.
set -euo pipefail

render() {
    local from=/etc/nginx/templates to=${NGINX_ENVSUBST_OUTPUT_DIR:-/etc/nginx/conf.d}
    local names
    names=$(env | cut -d= -f1 | grep -E "${NGINX_ENVSUBST_FILTER:-}" | sed 's/.*/${&}/')
    cd "$from"
    find . -name '*.template' | while read -r template; do
        mkdir -p "$to/$(dirname "$template")"
        envsubst "$names" < "$template" > "$to/${template%.template}"
    done
    cd /
}

if [ "$1" = nginx ] && [ -d /etc/nginx/templates ]; then
    for read_first in /docker-entrypoint.d/*.envsh; do
        # shellcheck source=/dev/null
        [ ! -x "$read_first" ] || . "$read_first"
    done
    render
fi
exec "$@"
