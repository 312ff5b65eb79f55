"""Configuration: two YAML files, a credentials file and the environment, in; plain facts, out.

document.py     a YAML file, read key by key
project.py      omnigraph.yaml: graphs, aliases, stored queries, defaults of a directory
operator.py     ~/.omnigraph/config.yaml: servers, profiles, aliases, defaults of a person
credentials.py  ~/.omnigraph/credentials: tokens, mode 0600
tokens.py       which token goes to which address
scope.py        flags and settings → the one graph that is meant
registry.py     stored queries, checked against a schema
store_query.py  a text as one more of them

Nothing here prints: `Operator.warnings` is for the command line to show.
"""

from omnigraph.config.operator import Operator, load_operator
from omnigraph.config.project import Project, ProjectGraph, StoredEntry, load_project
from omnigraph.config.scope import (
    Address,
    DirectScope,
    Scope,
    ServedScope,
    Settings,
    load_settings,
    resolve_scope,
)
from omnigraph.config.tokens import token_for

__all__ = [
    "Address",
    "DirectScope",
    "Operator",
    "Project",
    "ProjectGraph",
    "Scope",
    "ServedScope",
    "Settings",
    "StoredEntry",
    "load_operator",
    "load_project",
    "load_settings",
    "resolve_scope",
    "token_for",
]
