#!/usr/bin/env bash
# The pages in a browser: run.sh BASE_OR_BINARY [FOLDER], or run.sh --paint BASE
#
# Drives Debian's chromium against a running server (http://...; what needs a server of its own is left
# out then) or against servers that it starts of the binary, and stops by pid. Screenshots of each page go
# to FOLDER (else a temporary one, which is named and stays). Installs what it needs; the last line counts.
# --paint prints how long each page of a running server takes until something is seen.
set -eu
script=main.mjs
if [ "${1-}" = --paint ]; then
  script=paint.mjs
  shift
fi
target=${1:?usage: run.sh BASE_OR_BINARY [FOLDER]}
case $target in http*) ;; *) target=$(realpath "$target") ;; esac
shots=
if [ "$script" = main.mjs ]; then
  shots=${2:-$(mktemp -d)}
  mkdir -p "$shots"
  shots=$(realpath "$shots")
fi
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
work=$root/target/ci/pages
mkdir -p "$work"

if ! command -v chromium >/dev/null; then
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium; } \
    >"$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log"; exit 1; }
fi
if ! cmp -s package-lock.json "$work/package-lock.json" || [ ! -d "$work/node_modules/axe-core" ]; then
  cp package.json package-lock.json "$work/"
  (cd "$work" && npm ci --silent --no-audit --no-fund)
fi
cp ./*.mjs "$work/"
# The official client for the snippets in Python, where .ci/served has installed it.
python=$root/target/ci/venv/bin/python
[ -x "$python" ] || python=
cd "$work"
PAGES_PYTHON=${PAGES_PYTHON:-$python} exec node "$script" "$target" ${shots:+"$shots"}
