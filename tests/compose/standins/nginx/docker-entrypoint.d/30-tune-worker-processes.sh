#!/bin/sh
# Set the number of workers to the container's CPUs, if the variable is set.
set -e

[ -n "${NGINX_ENTRYPOINT_WORKER_PROCESSES_AUTOTUNE:-}" ] || exit 0
if [ ! -w /etc/nginx/nginx.conf ]; then
    echo "$0: error: can not modify /etc/nginx/nginx.conf (read-only file system?)"
    exit 0
fi
sed -i -E "s/^worker_processes .*/worker_processes $(nproc);/" /etc/nginx/nginx.conf
