"""Source: where the settings of a server come from, and whether that has changed since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from omnigraph.config import Project, load_project
from omnigraph.config.project import PROJECT_FILE, ProjectGraph
from omnigraph.errors import OmnigraphError
from omnigraph.server.boot import Arguments, resolve_settings
from omnigraph.server.settings import TOKENS_FILE, ServerSettings

Marks: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""What tells one state of some files from another, by file."""


class Source:
    """The arguments of the command, the environment, and the files that they name."""

    def __init__(self, arguments: Arguments, environment: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._environment = environment
        self._files: tuple[Path, ...] = ()
        self._loaded: Marks = ()
        self._seen: Marks = ()

    def read(self) -> ServerSettings:
        """The settings as the files are now.

        Raises:
            OmnigraphError: A file cannot be used, or the settings contradict each other.
        """
        self._files = tuple(sorted(set(self._list_files())))
        # Before they are read: a change in the meantime is a change.
        self._loaded = self._seen = _read_marks(self._files)
        return resolve_settings(self._arguments, self._environment)

    def has_changed(self) -> bool:
        """Whether files differ from those that were read last, and not from the last look.

        What differs from the last look is perhaps still being written.
        """
        now = _read_marks(self._files)
        is_still, self._seen = now == self._seen, now
        return is_still and now != self._loaded

    def _list_files(self) -> Iterator[Path]:
        """Every file and directory that `read` looks at, also when it refuses one of them."""
        tokens = self._environment.get(TOKENS_FILE)
        if tokens:
            yield Path(tokens)
        yield self._arguments.config or Path(PROJECT_FILE)
        try:
            project = load_project(self._arguments.config)
        except OmnigraphError:
            return
        yield from filter(None, [project.server.policy_file])
        yield from _files_of(project)
        for graph in project.graphs.values():
            yield from _files_of(graph)


def _files_of(graph: Project | ProjectGraph) -> Iterator[Path]:
    yield from filter(None, [graph.policy_file, graph.query_directory])
    yield from (entry.file for entry in graph.queries.values())


def _read_marks(files: tuple[Path, ...]) -> Marks:
    """The state of each file or directory; None for what is not there."""
    return tuple(map(_read_mark, files))


def _read_mark(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
