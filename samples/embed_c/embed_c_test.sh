#!/bin/bash
# The C sample trains and writes an adapter; Ctrl-C ends it early, and what it saved can be resumed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; cat "$work"/*.log; exit 1; }

"$here/run" 2 "$work/two" > "$work/two.log" 2>&1 || fail "exit code $?"
[ "$(grep -c '^step ' "$work/two.log")" = 2 ] || fail "not two steps"
[ -f "$work/two/adapter/adapter_model.safetensors" ] || fail "no adapter"

"$here/run" 1000 "$work/cut" > "$work/cut.log" 2>&1 &
child=$!
for _ in $(seq 600); do  # until it trains
  if grep -q '"event":"step"' "$work/cut/events.jsonl" 2> /dev/null; then break; fi
  sleep 0.1
done
kill -INT $child
wait $child || fail "exit code $? after Ctrl-C"
grep -q '^stopped' "$work/cut.log" || fail "not stopped"
grep -q '^saved ' "$work/cut.log" || fail "nothing saved"
[ "$(grep -c '^step ' "$work/cut.log")" -lt 1000 ] || fail "did all steps"
[ -f "$work/cut/adapter/adapter_model.safetensors" ] || fail "no adapter after Ctrl-C"
[ "$(wc -l < "$here/main.c")" -le 80 ] || fail "main.c has more than 80 lines"
