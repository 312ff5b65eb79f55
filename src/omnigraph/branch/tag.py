"""Tag a commit: its state is written down under a name, and stays until the tag goes."""

from __future__ import annotations

import time

from omnigraph.branch.create import history_turn
from omnigraph.errors import BadRequestError, CommitStateGone, TagExists, TagNotFound
from omnigraph.manifest.revisions import find_revision
from omnigraph.manifest.tags import MESSAGE_CHARACTERS_MAX, Tag, check_tag_name
from omnigraph.write.environment import WriteEnvironment


def create_tag(
    environment: WriteEnvironment,
    name: str,
    revision: str,
    *,
    message: str | None = None,
    actor: str | None = None,
) -> Tag:
    """Give the commit that a revision names a name. The same tag again changes nothing.

    Raises:
        TagExists: The name stands for another commit.
        CommitStateGone: The state of the commit was removed.
    """
    coordinator = environment.coordinator
    checked = check_tag_name(name)
    if message is not None and len(message) > MESSAGE_CHARACTERS_MAX:
        raise BadRequestError(
            f"the message has {len(message)} characters, at most {MESSAGE_CHARACTERS_MAX} are kept"
        )
    # A cleanup that began before the tag was there does not know what it has to leave.
    with history_turn(environment):
        state = find_revision(coordinator, revision)
        commit = state.head
        tag = Tag(checked, commit.commit_id, commit.branch, time.time_ns() // 1_000, actor, message)
        if not coordinator.commit_states.has_tables(state):
            raise CommitStateGone(commit.commit_id, commit.manifest_version, commit.branch)
        if not coordinator.tags.add(tag, state):
            known = coordinator.tags.find(checked)
            if known is not None and known[0].commit_id == commit.commit_id:
                return known[0]
            raise TagExists(checked)
    return tag


def delete_tag(environment: WriteEnvironment, name: str) -> None:
    """Remove a tag. What it kept goes with the next cleanup, unless something else needs it.

    Raises:
        TagNotFound: There is none of that name.
    """
    tags, checked = environment.coordinator.tags, check_tag_name(name)
    if not tags.remove(checked):
        raise TagNotFound(checked, tags.names())
