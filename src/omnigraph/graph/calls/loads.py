"""Load calls: files, records and frames become rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from omnigraph.errors import BadRequestError
from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch

if TYPE_CHECKING:
    from omnigraph.graph.results import LoadResult
    from omnigraph.pipeline.preview import LoadPreview
    from omnigraph.pipeline.progress import Listener
    from omnigraph.pipeline.sources import Source


class LoadCalls(GraphPart):
    """Change rows by loading files, records or frames."""

    @overload
    def load(
        self,
        data: Source | None = ...,
        *,
        mode: str,
        dry_run: Literal[True],
        mapping: str | Path | None = ...,
        branch: str = ...,
        base: str | None = ...,
        actor: str | None = ...,
        engine: str = ...,
        on_error: str = ...,
        quarantine: str | Path | None = ...,
        embed: bool = ...,
        ignore_members: bool = ...,
        progress: Listener | bool | None = ...,
        storage_options: Mapping[str, str] | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> LoadPreview: ...

    @overload
    def load(
        self,
        data: Source | None = ...,
        *,
        mode: str,
        dry_run: Literal[False] = ...,
        mapping: str | Path | None = ...,
        branch: str = ...,
        base: str | None = ...,
        actor: str | None = ...,
        engine: str = ...,
        on_error: str = ...,
        quarantine: str | Path | None = ...,
        embed: bool = ...,
        ignore_members: bool = ...,
        progress: Listener | bool | None = ...,
        storage_options: Mapping[str, str] | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> LoadResult: ...

    def load(
        self,
        data: Source | None = None,
        *,
        mode: str,
        mapping: str | Path | None = None,
        branch: str = MAIN,
        base: str | None = None,
        actor: str | None = None,
        engine: str = "auto",
        on_error: str = "reject",
        quarantine: str | Path | None = None,
        embed: bool = True,
        dry_run: bool = False,
        ignore_members: bool = False,
        progress: Listener | bool | None = None,
        storage_options: Mapping[str, str] | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> LoadResult | LoadPreview:
        """Load records as one commit, or nothing.

        `data` is a path, directory or glob, a list of them, `{type: files}`, text, or an iterable
        of records; or `mapping`, a YAML file, names files, types and columns. `mode` is
        `"overwrite"`, `"append"` or `"merge"`. With `base` a missing branch is created from it
        first. `on_error="quarantine"` loads the good records and writes the others, with reasons,
        to the file `quarantine`, or to one below the graph that the result names. `dry_run` reads
        and checks everything, writes nothing and returns a `LoadPreview`. A load that changes
        nothing makes no commit. Input on `s3://` is read with `storage_options`, or with those of
        the graph. With `ignore_members` a record may have members beside `type` and `data`.

        Raises:
            BadRowsError: Records break a rule of the schema; all of them are named, up to a cap.
            KeyConflict: An appended id is there already.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.loads import (
            find_load_schema,
            parse_option,
            permit_load,
            preview_load_request,
            run_load_request,
        )
        from omnigraph.pipeline.loader import LoadRequest, part_bytes
        from omnigraph.pipeline.model import LoadMode, OnError
        from omnigraph.pipeline.sources import plan_source
        from omnigraph.pipeline.spooled import showing_names

        who = permit_load(self._session, branch, base, actor)
        catalog = find_load_schema(self._session, branch, base).catalog
        options = storage_options or self._session.store.tables.storage_options
        note = read_note(message, metadata)
        with showing_names():
            request = LoadRequest(
                input=plan_source(
                    data, catalog, part_bytes(), options, None if mapping is None else str(mapping)
                ),
                mode=parse_option("load mode", mode, LoadMode),
                branch=canonical_branch(branch),
                actor=who,
                engine=engine,
                on_error=parse_option("on_error", on_error, OnError),
                quarantine_path=None if quarantine is None else str(quarantine),
                progress=progress,
                embeds=embed,
                ignores_members=ignore_members,
                note=note,
                embed_source=self._session.embed_source,
                spark=self._session.settings.spark,
            )
            if dry_run:
                return preview_load_request(self._session, request, base)
            return run_load_request(self._session, request, base)

    def ingest(
        self,
        data: Source,
        *,
        branch: str,
        from_branch: str = MAIN,
        mode: str = "merge",
        **options: Any,
    ) -> LoadResult:
        """Load into a branch, which is created from `from_branch` when it is missing."""
        result: LoadResult = self.load(data, mode=mode, branch=branch, base=from_branch, **options)
        return result

    def load_dataframe(
        self,
        df: Any,
        *,
        type: str | None = None,  # noqa: A002 — the word of the API
        edge: str | None = None,
        mode: str,
        **options: Any,
    ) -> LoadResult:
        """Load a Spark, pandas, polars or Arrow frame of one type: columns are its properties.

        An edge frame has `src` and `dst`, or `from` and `to`.
        """
        from omnigraph.graph.loads import find_load_schema, permit_load
        from omnigraph.pipeline.frames import table_key

        if (type is None) == (edge is None):
            raise BadRequestError("name the type of the rows: give one of `type` and `edge`")
        branch, base, actor = (options.get(each) for each in ("branch", "base", "actor"))
        permit_load(self._session, branch, base, actor)
        catalog = find_load_schema(self._session, branch or MAIN, base).catalog
        kind = "node" if edge is None else "edge"
        key = table_key(catalog, str(type if edge is None else edge), kind=kind)
        return self.load_dataframes({key: df}, mode=mode, **options)

    def load_dataframes(
        self,
        frames: Mapping[str, Any],
        *,
        mode: str,
        branch: str = MAIN,
        base: str | None = None,
        actor: str | None = None,
        engine: str = "auto",
        on_error: str = "reject",
        quarantine: str | Path | None = None,
        embed: bool = True,
        progress: Listener | bool | None = None,
        properties: Mapping[str, str] | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> LoadResult:
        """Load frames, by type name, as one commit, or nothing. See `load_dataframe`.

        Raises:
            PreconditionFailed: `if_commit` is given and is not the head of the branch.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.loads import (
            find_load_schema,
            parse_option,
            permit_load,
            run_load_request,
        )
        from omnigraph.pipeline.engine import uses_spark
        from omnigraph.pipeline.frames import Frames, spool_frames, table_key
        from omnigraph.pipeline.loader import LoadRequest, part_bytes
        from omnigraph.pipeline.model import LoadMode, OnError

        who = permit_load(self._session, branch, base, actor)
        catalog = find_load_schema(self._session, branch, base).catalog
        note = read_note(message, metadata)
        by_key = Frames(
            {table_key(catalog, name): frame for name, frame in frames.items()}, catalog
        )
        spark = by_key.spark or self._session.settings.spark
        for_spark = by_key.spark is not None or uses_spark(engine, spark, stays=True)
        tables = self._session.store.tables
        with spool_frames(by_key, tables, part_bytes(), for_spark=for_spark) as rows:
            request = LoadRequest(
                input=rows,
                mode=parse_option("load mode", mode, LoadMode),
                branch=canonical_branch(branch),
                actor=who,
                engine=engine,
                on_error=parse_option("on_error", on_error, OnError),
                quarantine_path=None if quarantine is None else str(quarantine),
                progress=progress,
                embeds=embed,
                embed_source=self._session.embed_source,
                spark=spark,
                properties=properties or {},
                note=note,
            )
            return run_load_request(self._session, request, base, if_commit)
