"""Facts: what a manifest says beside its tables, after some commits."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.manifest.checks import apply_check_notes
from omnigraph.manifest.model import Facts, GraphCommit, ManifestState
from omnigraph.manifest.vector_models import apply_notes


def read_facts(state: ManifestState) -> Facts:
    return Facts(state.vector_models, state.checks)


def derive_facts(
    state: ManifestState, commits: Sequence[GraphCommit], known: Facts | None
) -> Facts:
    """The facts after commits on top of a state: those that are `known`, else by their notes."""
    return known or Facts(
        apply_notes(state.vector_models, commits), apply_check_notes(state.checks, commits)
    )
