#!/bin/bash
# check PORT PATH: whether this container's server answers with 200. The image has neither curl nor wget for sure, but bash.
exec 3<>"/dev/tcp/localhost/$1" || exit 1
printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$2" >&3
read -r -t 5 _ status _ <&3
[ "$status" = 200 ]
