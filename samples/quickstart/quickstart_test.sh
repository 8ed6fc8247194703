#!/bin/bash
# The job of the quick start is valid, fits its data, trains, goes on, and exports; the script removes nothing that is not its own.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
inlaid=${INLAID_BUILD:-$root/build}/bin/inlaid
model=${INLAID_TEST_DATA:-$("$root/sdk/deps/fetch_model")}/SmolLM2-135M-Instruct.Q4_1.gguf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; cat "$work/log"; exit 1; }
: > "$work/log"

mkdir "$work/precious"
touch "$work/precious/file"
if "$here/run" --fresh "$work/precious" > "$work/log" 2>&1; then fail "a folder that holds no job was taken"; fi
[ -f "$work/precious/file" ] || fail "a folder that holds no job was removed"
if "$here/run" --frsh > "$work/log" 2>&1; then fail "an unknown option was accepted"; fi

"$inlaid" --json plan "$here/job.json" --set "model.path=$model" > "$work/log" || fail "plan"
grep -q '"refused":\[\]' "$work/log" || fail "refused"
"$inlaid" data check "$here/job.json" --set "model.path=$model" > "$work/log" || fail "data check"
grep -q '^train: 3000 rows, 3000 used, 0 truncated' "$work/log" || fail "not every row is used"
grep -q '^eval: 100 rows, 100 used, 0 truncated' "$work/log" || fail "not every held-out row is used"

# A job that its time limit stops: its folder is not overwritten, but gone on with.
code=0
"$inlaid" train "$here/job.json" --set "model.path=$model" --set data.eval=null --set train.max_steps=4 \
  --set train.micro_batch_tokens=128 --set checkpoint.save_steps=2 --set runtime.wall_time_limit=0.001 \
  --out "$work/out" > "$work/log" 2>&1 || code=$?
[ $code = 130 ] || fail "a run whose time is up ended with $code"
code=0
"$inlaid" train "$here/job.json" --set "model.path=$model" --out "$work/out" > "$work/log" 2>&1 || code=$?
[ $code = 2 ] || fail "training into the folder of a job ended with $code"
code=0
"$inlaid" --json resume "$work/out" > "$work/log" 2>&1 || code=$?
[ $code = 130 ] || fail "its resume, under the same limit, ended with $code"
"$inlaid" --json export "$work/out" --format peft --to "$work/adapter" > "$work/log" 2>&1 || fail "export"
[ -f "$work/adapter/adapter_model.safetensors" ] || fail "no adapter"
"$inlaid" --json chat "$work/out" --system Dictionary. --prompt "Define: lantern" --generation '{"max_new_tokens": 4}' \
  > "$work/log" 2>&1 || fail "chat"
grep -q '"answer":' "$work/log" || fail "no answer"
