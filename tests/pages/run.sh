#!/usr/bin/env bash
# The pages of a running docket, in a browser: run.sh BINARY [FOLDER for screenshots]
# Starts the binary twice (fake engine; without keys and with them) and stops it by pid. The last line is
# `N passed, 0 failed`.
set -eu
cd "$(dirname "$0")"
binary=$1 shots=${2:-}
work=$(mktemp -d)
command -v chromium >/dev/null || {
  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core
} >"$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log"; exit 1; }
[ -d node_modules/playwright-core ] && [ -d node_modules/axe-core ] || npm ci --silent --no-audit --no-fund
pids=()
stop() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" || true; done
  rm -rf "$work"
}
trap stop EXIT

# started LOG ARGUMENTS...: runs a server until the end; its address is in $base.
started() {
  local log=$1
  shift
  "$binary" serve --engine fake --port 0 "$@" >"$log" 2>&1 &
  pids+=($!)
  for _ in $(seq 1 100); do
    base=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$log" | head -n 1)
    [ -n "$base" ] && return 0
    sleep 0.1
  done
  cat "$log"
  return 1
}
started "$work/open.log" && open=$base
started "$work/keys.log" --api-key "ops=page-test-key" && keyed=$base
node browse.mjs --open "$open" --keyed "$keyed" --key page-test-key ${shots:+--shots "$shots"}
