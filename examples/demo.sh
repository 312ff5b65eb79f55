#!/usr/bin/env bash
# The product at work. Every line that starts with $ is a command you can type.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/team/* "$here"/make_team.py "$work"
cd "$work"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() {
    printf '\n$'
    for word in "$@"; do
        if [[ $word =~ ^[A-Za-z0-9_./:=-]+$ ]]; then printf ' %s' "$word"; else printf " '%s'" "$word"; fi
    done
    printf '\n'
}
run() { show "$@"; "$@"; }
refused() { show "$@"; if "$@"; then echo "expected a refusal" >&2; exit 1; fi; }

say "A schema and queries, checked before anything runs"
run omnigraph schema check team.pg
refused omnigraph lint --schema team.pg --query typo.gq

say "A graph of 200,000 records, loaded on Spark as one commit"
run python make_team.py team.jsonl 40000
run omnigraph init team.omni --schema team.pg
run omnigraph load team.omni --data team.jsonl --mode overwrite --engine spark
run omnigraph snapshot team.omni

say "Query"
busiest='query busiest() {
    match { $p: Person  $p wrote $n  $n.status = "published" }
    return { $p.name, count($n) as notes }
    order { notes desc, $p.name }
    limit 3
}'
run omnigraph query -e "$busiest" --store team.omni
circle='query circle() {
    match { $p: Person { slug: "p1" }  $p knows{1,4} $c  search($c.name, "ada") }
    return { $c.name, $c.title }
    order { $c.name }
    limit 5
}'
run omnigraph query -e "$circle" --store team.omni

say "Branch, change, review, merge"
run omnigraph branch create review --store team.omni
run omnigraph mutate retitle --query people.gq --params '{"slug": "p1", "title": "Fellow"}' \
    --store team.omni --branch review --as ada
run omnigraph branch diff main review --store team.omni
run omnigraph branch merge review --store team.omni --as ada

say "Two people edited the same thing"
run omnigraph branch create rival --store team.omni
run omnigraph mutate retitle --query people.gq --params '{"slug": "p1", "title": "Editor"}' \
    --store team.omni --branch rival
run omnigraph mutate retitle --query people.gq --params '{"slug": "p1", "title": "Analyst"}' \
    --store team.omni
refused omnigraph branch merge rival --store team.omni
run omnigraph branch merge rival --store team.omni --resolve theirs

say "Time travel"
run omnigraph log team.omni --limit 4
first=$(omnigraph commit list team.omni | sed -n '$p' | cut -d' ' -f1)
everyone='query everyone() { match { $p: Person } return { count($p) as people } }'
run omnigraph query -e "$everyone" --store team.omni --snapshot "$first"
run omnigraph query -e "$everyone" --store team.omni

say "Carry it away, branches included"
run mv team.omni archive.omni
run cp -r archive.omni team.omni
title='query title() { match { $p: Person { slug: "p1" } } return { $p.title } }'
for branch in review rival; do run omnigraph query -e "$title" --store archive.omni --branch "$branch"; done
run omnigraph mutate retitle --query people.gq --params '{"slug": "p1", "title": "Founder"}' \
    --store team.omni --branch rival
run omnigraph query -e "$title" --store team.omni --branch rival
run omnigraph query -e "$title" --store archive.omni --branch rival

say "Evolve the schema, keep it fast, check that it is whole"
for branch in review rival; do run omnigraph branch delete "$branch" --store team.omni; done
run omnigraph schema plan team.omni --schema team-next.pg
run omnigraph schema apply team.omni --schema team-next.pg
run omnigraph optimize team.omni --quiet
run omnigraph export team.omni --type Note --out notes.jsonl
run omnigraph verify team.omni
