#!/bin/sh
# Makes compose/secrets/ once: random passwords, and the address of PostgreSQL with its password. Never overwrites.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
random() { od -An -tx1 -N24 /dev/urandom | tr -d ' \n'; }
make() { [ -s "secrets/$1" ] || printf '%s\n' "$2" > "secrets/$1"; }
make postgres_password "$(random)"
make postgres_url "postgresql://shinsen:$(cat secrets/postgres_password)@postgres:5432/shinsen"
make grafana_password "$(random)"
# The key of an embeddings server. Users of the proxy in `prod`: name:hash per line (openssl passwd -apr1). Empty: none.
for file in embeddings_key htpasswd; do [ -e "secrets/$file" ] || : > "secrets/$file"; done
# Containers run as users of their own and read the files through bind mounts; on this machine the folder keeps others out.
chmod 0644 secrets/*
chmod 0700 secrets
echo "compose/secrets: $(ls secrets | tr '\n' ' ')"
