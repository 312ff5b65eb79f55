"""Tags that travel: those of commits that a received branch comes from.

A tag has its name, time, actor and message everywhere; the state that it keeps is that of the
receiver. A name that stands for another commit here stays what it is.
"""

from __future__ import annotations

from omnigraph.branch.create import history_turn
from omnigraph.errors import CommitNotFound
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import Snapshot
from omnigraph.manifest.tags import Tag
from omnigraph.transfer.contents import Source
from omnigraph.transfer.histories import list_ancestors
from omnigraph.transfer.result import TransferResult
from omnigraph.write.environment import WriteEnvironment


def receive_tags(source: Source, branch: str, target: WriteEnvironment) -> TransferResult:
    """Take the tags of commits that a branch of the source comes from.

    One whose state a cleanup of the target has removed is told among those that were not taken.
    """
    reached = list_ancestors(source.environment.coordinator.fresh(branch))
    tags, ours = source.environment.coordinator.tags, target.coordinator.tags
    theirs = [tag for tag in map(tags.find_tag, tags.names()) if tag and tag.commit_id in reached]
    names = set(ours.names()) if theirs else set()
    known = {each.name: ours.find_tag(each.name) for each in theirs if each.name in names}
    taken: list[str] = []
    refused: list[str] = []
    for tag in theirs:
        there = known.get(tag.name)
        if there is None:
            hit(Failpoint.TRANSFER_BEFORE_TAG)
            (taken if _take(target, tag) else refused).append(tag.name)
        elif there.commit_id != tag.commit_id:
            refused.append(tag.name)
    return TransferResult(tags=tuple(taken), refused_tags=tuple(refused))


def _take(target: WriteEnvironment, tag: Tag) -> bool:
    # A cleanup that began before the tag was there does not know what it has to leave.
    with history_turn(target):
        state = _find_state(target, tag.commit_id)
        return state is not None and target.coordinator.tags.add(tag, state)


def _find_state(target: WriteEnvironment, commit_id: str) -> Snapshot | None:
    coordinator = target.coordinator
    try:
        state = coordinator.commit_states.find(coordinator.commit(commit_id))
    except CommitNotFound:
        return None
    return state if state is not None and coordinator.commit_states.has_tables(state) else None
