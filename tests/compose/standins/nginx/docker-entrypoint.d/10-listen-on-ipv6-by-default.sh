#!/bin/sh
# Let the default server listen on IPv6, too.
set -e

file=/etc/nginx/conf.d/default.conf
if [ ! -w "$file" ]; then
    echo "$0: info: can not modify $file (read-only file system?)"
elif [ -f /proc/net/if_inet6 ] && ! grep -q '\[::]' "$file"; then
    sed -i 's/listen       80;/&\n    listen  [::]:80;/' "$file"
fi
