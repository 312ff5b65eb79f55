"""Remotes: names for other stores of a graph, kept beside it. A clone does not take them along.

    __remotes/{name}.json   {"uri": …}

Only the address is kept. What it takes to open it (keys, tokens, endpoints) comes from the
environment or the call, every time.
"""

from __future__ import annotations

import json
import os
from urllib.parse import urlsplit

from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    BadRequestError,
    ConflictError,
    NotFoundError,
    RemoteNotFound,
    with_suggestion,
)
from omnigraph.json_form import JsonForm
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch, is_internal
from omnigraph.storage.graph_texts import GraphTexts

DIRECTORY = "__remotes"
ORIGIN = "origin"
"""What the store is called that a graph was cloned from, or that is given by its address."""
_ENDING = ".json"


@dataclass(frozen=True, slots=True)
class Remote(JsonForm):
    """Another store of the graph. Its branches are fetched as `{name}/{branch}`."""

    name: str
    uri: str


class Remotes:
    """The other stores that a graph has names for."""

    def __init__(self, texts: GraphTexts) -> None:
        self._texts = texts

    def add(self, name: str, uri: str) -> Remote:
        """Name a store. The same again changes nothing.

        Raises:
            BadRequestError: The name cannot be part of a branch's, or the address has a secret.
            ConflictError: The name stands for another store.
        """
        remote = Remote(check_name(name), check_uri(uri))
        text = json.dumps({"uri": remote.uri}) + "\n"
        if not self._texts.write_text_if_absent(_file(remote.name), text):
            known = self.find(remote.name)
            if known != remote:
                was = "a store that cannot be read" if known is None else f"'{known.uri}'"
                raise ConflictError(
                    f"remote '{name}' is {was} already — remove it first, or choose another name"
                )
        return remote

    def remove(self, name: str) -> Remote:
        """Forget a store. Branches that were fetched from it stay.

        Raises:
            NotFoundError: There is none of that name.
        """
        found = self.find(name)
        if found is None and name not in self.names():
            message = f"there is no remote '{name}' — `omnigraph remote list` shows those there are"
            raise NotFoundError(with_suggestion(message, name, self.names()))
        self._texts.delete(_file(name))
        return found or Remote(name, "")

    def find(self, name: str) -> Remote | None:
        """The store of a name; None when there is none, or its file cannot be read."""
        if not _is_name(name):
            return None
        text = self._texts.read_text_if_exists(_file(name))
        try:
            return None if text is None else Remote(name, str(json.loads(text)["uri"]))
        except (ValueError, TypeError, KeyError):
            return None

    def get(self, given: str) -> Remote | None:
        """The store of a name; None for what is an address.

        Raises:
            RemoteNotFound: It has the form of a name, none is known, and nothing is at that path.
        """
        found = self.find(given)
        if found is None and _is_name(given) and not os.path.exists(given):
            raise RemoteNotFound(given, [each.name for each in self.list()])
        return found

    def names(self) -> list[str]:
        files = self._texts.list_dir(DIRECTORY)
        return sorted(each.removesuffix(_ENDING) for each in files if each.endswith(_ENDING))

    def list(self) -> list[Remote]:
        """Every store that has a name and can be read."""
        return [each for each in map(self.find, self.names()) if each is not None]


def check_name(name: str) -> str:
    """Return the name of a remote, or refuse it: it is the first part of branch names."""
    if not _is_name(name):
        raise BadRequestError(
            f"'{name[:80]}' is not a name for a remote — use letters, digits, '.', '-' and '_'"
        )
    return name


def check_uri(uri: str) -> str:
    """The address to keep: a path as an absolute one, and no secret."""
    if "://" not in uri:
        return os.path.abspath(os.path.expanduser(uri))
    parts = urlsplit(uri)
    if parts.username or parts.password or parts.query:
        raise BadRequestError(
            f"the address at '{parts.hostname}' has credentials or options in it, which are not "
            "kept — leave them out, and give them by the environment"
        )
    return uri


def _is_name(name: str) -> bool:
    try:
        checked = canonical_branch(name)
    except BadRequestError:
        return False
    is_one_part = checked == name and "/" not in name and name[0].isalnum()
    return is_one_part and name != MAIN and not is_internal(name)


def _file(name: str) -> str:
    return f"{DIRECTORY}/{name}{_ENDING}"
