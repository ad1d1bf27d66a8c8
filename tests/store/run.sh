#!/usr/bin/env bash
# Servers that share a store, on a real Postgres: run.sh BINARY [FOLDER]
#
# Starts a cluster of Debian's postgresql, which is installed where it is missing, in a temporary folder, on
# a free port and as an unprivileged user; check.py starts servers of the binary on it. Logs go to FOLDER
# (else to the temporary one, which goes at the end where nothing failed). Everything is stopped by pid; the
# last line counts.
set -eu
binary=$(realpath "${1:?usage: run.sh BINARY [FOLDER]}")
cd "$(dirname "$0")"
work=$(mktemp -d)
logs=${2:-$work/logs}
mkdir -p "$logs"
logs=$(realpath "$logs")

find_bin() { find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1; }
if [ -z "$(find_bin)" ]; then
  # No cluster of its own: nobody would stop it.
  mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] ||
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql; } \
    >"$logs/apt.log" 2>&1 || { tail -n 20 "$logs/apt.log"; exit 1; }
fi
PG_BIN=$(find_bin)
# Postgres does not run as root.
as=()
if [ "$(id -u)" = 0 ]; then
  chown postgres "$work"
  chmod 755 "$work"
  as=(setpriv --reuid postgres --regid postgres --init-groups --)
fi
password=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
printf '%s\n' "$password" >"$work/password"
chmod 644 "$work/password"
"${as[@]}" "$PG_BIN/initdb" -D "$work/data" -U docket --auth=scram-sha-256 --pwfile="$work/password" \
  --no-sync --encoding=UTF8 --locale=C >"$logs/initdb.log" 2>&1 || { tail -n 20 "$logs/initdb.log"; exit 1; }
chmod 600 "$work/password"
status=0
PG_BIN=$PG_BIN PG_AS="${as[*]:-}" python3 check.py "$binary" "$work" "$logs" || status=$?
if [ "$status" = 0 ]; then rm -rf "$work"; else echo "logs: $logs" >&2; fi
exit "$status"
