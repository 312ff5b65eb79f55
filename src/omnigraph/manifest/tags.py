"""Tags: names for commits that stay. The state of a tagged commit is there as long as the tag is.

    __tags/{name, percent-encoded}.json   the tag and the state it names, see `state_text.py`

Cleanup and the deletion of a branch leave what a tag names, so it is read, compared and restored
from for ever. A tag never moves: delete it to use its name again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from urllib.parse import quote, unquote

from omnigraph.dataclass import dataclass
from omnigraph.display import show_html
from omnigraph.display_fields import make_field_sheet
from omnigraph.errors import BadRequestError, OmnigraphError, StorageError
from omnigraph.json_form import JsonForm
from omnigraph.lru import Lru
from omnigraph.manifest.branch_names import NAME_FORM, canonical_branch, is_internal
from omnigraph.manifest.model import MAIN, Snapshot
from omnigraph.manifest.state_text import UNREADABLE, states_to_text, text_to_states
from omnigraph.storage.file_times import Attributes
from omnigraph.storage.graph_texts import GraphTexts

DIRECTORY = "__tags"
MESSAGE_CHARACTERS_MAX = 10_000
KNOWN_MAX = 10_000
"""Tags that are remembered: half a kilobyte each."""
_ENDING = ".json"


@dataclass(frozen=True, slots=True)
class Tag(JsonForm):
    """A name for a commit: who gave it, when (microseconds since 1970), and what it means.

    `branch` is where the commit was made; it may be gone.
    """

    name: str
    commit_id: str
    branch: str
    created_at: int
    actor: str | None = None
    message: str | None = None

    make_sheet = make_field_sheet
    _repr_html_ = show_html


def check_tag_name(name: str) -> str:
    """Return the name to use, or refuse it. It has the form of a branch's."""
    try:
        checked = canonical_branch(name)
    except BadRequestError:
        raise BadRequestError(f"'{name[:80]}' is not a tag name — use {NAME_FORM}") from None
    if checked == MAIN or is_internal(checked):
        raise BadRequestError(f"a tag cannot be called '{checked}' — choose another name")
    return checked


_known_tags: Lru[str, tuple[tuple[Attributes, ...], Tag]] = Lru(KNOWN_MAX)
"""Tags by the places of their files. What they were when they had these attributes."""


class Tags:
    """The tags of a graph, one text each."""

    def __init__(self, texts: GraphTexts) -> None:
        self._texts = texts

    def add(self, tag: Tag, state: Snapshot) -> bool:
        """Write a tag down, durably and whole; False when its name is taken."""
        text = states_to_text([state], {"tag": asdict(tag)})
        return self._texts.write_text_if_absent(_file(tag.name), text)

    def find(self, name: str) -> tuple[Tag, Snapshot] | None:
        """A tag and the state it names.

        Raises:
            StorageError: Its file is damaged.
        """
        text = self._texts.read_text_if_exists(_file(name))
        if text is None:
            return None
        try:
            kept = text_to_states(text)
            tag = Tag(**kept.facts["tag"])
            return tag, kept.states[tag.commit_id]
        except UNREADABLE:
            raise StorageError(
                f"'{_file(name)}' cannot be read — restore it from a backup, or delete the tag "
                f"'{name}' and set it again"
            ) from None

    def find_tag(self, name: str) -> Tag | None:
        """A tag without its state; where its file proves that it is unchanged, it is not read.

        Raises:
            StorageError: Its file is damaged.
        """
        key = f"{self._texts.root}/{_file(name)}"
        attributes = self._texts.read_attributes([_file(name)])
        known = _known_tags.get(key)
        if known is not None and known[0] == attributes:
            return known[1]
        found = self.find(name)
        if found is None:
            return None
        if attributes is not None:
            _known_tags.put(key, (attributes, found[0]))
        return found[0]

    def remove(self, name: str) -> bool:
        """Let go of a tag, damaged or not; whether there was one."""
        if not self._texts.exists(_file(name)):
            return False
        self._texts.delete(_file(name))
        return True

    def names(self) -> list[str]:
        files = self._texts.list_dir(DIRECTORY)
        return sorted(unquote(each.removesuffix(_ENDING)) for each in files if _is_tag(each))

    def __iter__(self) -> Iterator[tuple[Tag, Snapshot]]:
        """Every tag with its state, by name."""
        for name in self.names():
            found = self.find(name)
            if found is not None:
                yield found

    def find_state(self, commit_id: str) -> Snapshot | None:
        """The state of a commit that some tag names."""
        return next((state for tag, state in self if tag.commit_id == commit_id), None)

    def find_damaged(self) -> dict[str, str]:
        """File → what is wrong with it."""
        found = {}
        for name in self.names():
            try:
                self.find(name)
            except OmnigraphError as error:
                found[_file(name)] = f"is damaged: {error.message}"
        return found


def _file(name: str) -> str:
    return f"{DIRECTORY}/{quote(name, safe='')}{_ENDING}"


def _is_tag(file: str) -> bool:
    return file.endswith(_ENDING)
