#!/usr/bin/env bash
# Build the web console from web/ into the package, when web/ is not what it was built from last.
set -euo pipefail
cd "$(dirname "$0")/.."
built=src/handrail/serve/console
want=$(find web -path web/node_modules -prune -o -type f -print | LC_ALL=C sort | xargs cksum | cksum)
[ "$(cat "$built/.built-from" 2>/dev/null)" = "$want" ] && exit 0

printf 'console: building it\n' >&2
(
  cd web
  npm ci --no-audit --no-fund --no-update-notifier --loglevel error >&2
  npm run --silent check
  npm test --silent >&2
  npm run --silent build
)
printf '%s' "$want" >"$built/.built-from"
