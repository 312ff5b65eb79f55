"""Examples: one or two lines for every command, below its help. Tests parse each of them."""

from __future__ import annotations

from typing import Final

_MERGE = """omnigraph branch merge review --into main --uri team.omni --preview
omnigraph branch merge review --into main --uri team.omni --resolve theirs -m 'New titles'"""
_QUERY = """omnigraph query colleagues --query people.gq --store team.omni
omnigraph query --store team.omni -e 'query q() { match { $p: Person } return { $p } }'"""

EXAMPLES: Final = {
    "init": "omnigraph init team.omni --schema team.pg",
    "clone": "omnigraph clone team.omni copy.omni",
    "push": "omnigraph push origin --store team.omni",
    "pull": "omnigraph pull central.omni --store team.omni",
    "fetch": "omnigraph fetch origin --prune --store team.omni",
    "load": """omnigraph load team.omni --type Person people.csv --mode merge
omnigraph load team.omni --data records.jsonl --mode append --dry-run""",
    "export": "omnigraph export team.omni > team.jsonl",
    "query": _QUERY,
    "alias": "omnigraph alias colleagues Ada",
    "explain": "omnigraph explain colleagues --query people.gq --store team.omni",
    "algorithm": "omnigraph algorithm pagerank --node Person --edge Knows --store team.omni",
    "mutate": "omnigraph mutate promote_all --query people.gq --store team.omni",
    "snapshot": "omnigraph snapshot team.omni",
    "log": "omnigraph log team.omni --limit 5",
    "history": "omnigraph history Person ada --store team.omni",
    "bisect": "omnigraph bisect team.omni --assert duplicates.gq --good main~20",
    "blame": "omnigraph blame Person ada --store team.omni",
    "revert": "omnigraph revert main~1 --store team.omni --preview",
    "cherry-pick": "omnigraph cherry-pick review --into main --store team.omni",
    "restore": "omnigraph restore --from main~3 --type Person --id ada --store team.omni",
    "verify": "omnigraph verify team.omni",
    "optimize": "omnigraph optimize team.omni",
    "cleanup": "omnigraph cleanup team.omni --keep 10",
    "repair": "omnigraph repair team.omni",
    "doctor": "omnigraph doctor team.omni",
    "login": "omnigraph login central",
    "logout": "omnigraph logout central",
    "embed": "omnigraph embed team.omni",
    "lint": "omnigraph lint --query people.gq --schema team.pg",
    "language": "omnigraph language --json",
    "lsp": "omnigraph lsp",
    "shell": """omnigraph shell team.omni
omnigraph shell team.omni < steps.txt""",
    "mcp": "omnigraph mcp team.omni",
    "ui": "omnigraph ui team.omni",
    "serve": "omnigraph serve team.omni --bind 127.0.0.1:8080",
    "version": "omnigraph version",
    "changes list": "omnigraph changes list team.omni --since 0",
    "changes poll": "omnigraph changes poll --store team.omni",
    "changes baseline": "omnigraph changes baseline --out baseline --store team.omni",
    "index ensure": "omnigraph index ensure team.omni",
    "jobs list": "omnigraph jobs list --server central",
    "jobs show": "omnigraph jobs show 01J9Z --server central",
    "branch create": "omnigraph branch create review --from main --uri team.omni",
    "branch list": "omnigraph branch list --uri team.omni",
    "branch delete": "omnigraph branch delete review --uri team.omni",
    "branch reset": "omnigraph branch reset review review~2 --uri team.omni --preview",
    "branch merge": _MERGE,
    "branch diff": "omnigraph branch diff main review --uri team.omni",
    "tag create": "omnigraph tag create v1 --store team.omni",
    "tag list": "omnigraph tag list --store team.omni",
    "tag delete": "omnigraph tag delete v1 --store team.omni",
    "remote add": "omnigraph remote add origin central.omni --store team.omni",
    "remote list": "omnigraph remote list --store team.omni",
    "remote remove": "omnigraph remote remove origin --store team.omni",
    "backup create": "omnigraph backup create vault --store team.omni",
    "backup list": "omnigraph backup list vault",
    "backup restore": "omnigraph backup restore vault restored.omni",
    "request open": "omnigraph request open review --title 'New titles' --uri team.omni",
    "request list": "omnigraph request list --uri team.omni",
    "request show": "omnigraph request show 1 --preview --uri team.omni",
    "request edit": "omnigraph request edit 1 --reviewer ada --uri team.omni",
    "request comment": "omnigraph request comment 1 'Why?' --type Person --id ada --uri team.omni",
    "request approve": "omnigraph request approve 1 --uri team.omni",
    "request reject": "omnigraph request reject 1 --text 'The title is wrong' --uri team.omni",
    "request withdraw": "omnigraph request withdraw 1 --uri team.omni",
    "request close": "omnigraph request close 1 --uri team.omni",
    "request reopen": "omnigraph request reopen 1 --uri team.omni",
    "request merge": "omnigraph request merge 1 --delete-branch --uri team.omni",
    "checks list": "omnigraph checks list --store team.omni",
    "checks apply": "omnigraph checks apply checks.gq --store team.omni",
    "checks run": "omnigraph checks run --store team.omni",
    "commit list": "omnigraph commit list team.omni",
    "commit show": "omnigraph commit show main --store team.omni",
    "commit changes": "omnigraph commit changes main --store team.omni",
    "blob get": "omnigraph blob get node Person ada photo --store team.omni > ada.jpg",
    "blob stat": "omnigraph blob stat node Person ada photo --store team.omni",
    "blob put": "omnigraph blob put node Person ada photo ada.jpg --store team.omni",
    "schema check": "omnigraph schema check team.pg",
    "schema infer": "omnigraph schema infer people.csv",
    "schema show": "omnigraph schema show team.omni",
    "schema plan": "omnigraph schema plan team.omni --schema team.pg",
    "schema apply": "omnigraph schema apply team.omni --schema team.pg",
    "policy validate": "omnigraph policy validate",
    "policy test": "omnigraph policy test",
    "policy explain": "omnigraph policy explain --actor ada --action change --branch main",
    "queries list": "omnigraph queries list",
    "queries validate": "omnigraph queries validate",
    "graphs list": "omnigraph graphs list --server central",
    "profile list": "omnigraph profile list",
    "profile show": "omnigraph profile show central",
}


def find_examples(path: str) -> str | None:
    """The examples of a command, such as `branch merge`, as a paragraph of its help."""
    found = EXAMPLES.get(path)
    if found is None:
        return None
    title = "Examples" if "\n" in found else "Example"
    return "\b\n" + f"{title}:\n" + "\n".join(f"  {line}" for line in found.splitlines())
