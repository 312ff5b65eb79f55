#!/usr/bin/env bash
# The product at work, on a small graph. Every line starting with $ is a command you can type.
set -euo pipefail
cd "$(dirname "$0")/team"

run() { printf '\n$ %s\n' "$*"; "$@"; }
refused() { printf '\n$ %s\n' "$*"; if "$@"; then echo "expected a refusal" >&2; exit 1; fi; }

run omnigraph version
run omnigraph schema check team.pg
run omnigraph lint --schema team.pg --query people.gq
refused omnigraph lint --schema team.pg --query typo.gq
run omnigraph schema plan --from team.pg --to team-next.pg
