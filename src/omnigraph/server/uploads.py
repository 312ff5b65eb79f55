"""Uploads: the files of a form, written to disk as they arrive.

    Person=@people.csv   a file of one type: the field is named after it
    data=@papers.jsonl   a file whose records, or whose name, tell their types
    mapping=@load.yaml   a mapping, with the files it names as `data` beside it
    directory=files      with a mapping: the directory its files are in
    models=@_embedding_models.json   what made the vectors of an export, from beside its files

No file is ever whole in memory, and none is stored outside the directory of the upload.
"""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from omnigraph.errors import BadRequestError, StorageError
from omnigraph.pipeline.spooled import SpooledFiles
from omnigraph.server.bodies import stream_bytes
from omnigraph.server.call import Call
from omnigraph.server.http_errors import HttpError
from omnigraph.server.jobs import UNTYPED, Upload

FORM = "multipart/form-data"
UPLOAD_BYTES = "upload_request_bytes"
FILES_MAX = 1_000
_TEXT_BYTES_MAX = 4_096
_MODELS = "models"
_FIELDS = (UNTYPED, "mapping", "directory", _MODELS)


async def receive_upload(call: Call, spooled: SpooledFiles) -> Upload:
    """Write the files of the body of a request to disk.

    Raises:
        HttpError: The body is no form (415), or the client stalled.
        BodyTooLarge: It is longer than `upload_bytes_max`.
        BadRequestError: The form has a field that means nothing here, or is damaged.
    """
    content_type = call.request.headers.get("content-type", "")
    media, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if media.decode(errors="replace") != FORM or not boundary:
        raise HttpError(415, f"content type is '{content_type[:80]}', expected {FORM}")
    limits = call.serving.settings.limits
    form = FormParser(Upload(spooled), boundary)
    try:
        async for chunk in stream_bytes(
            call.request, limits, limits.upload_bytes_max, UPLOAD_BYTES
        ):
            await call.run_read(form.feed, chunk)
        return form.finish()
    finally:
        form.close()


class FormParser:
    """The parser of one form. It writes each file while it is being read."""

    def __init__(self, upload: Upload, boundary: bytes) -> None:
        self.upload = upload
        self._header: list[bytes] = [b"", b""]
        self._disposition = b""
        self._file: BinaryIO | None = None
        self._field = ""
        self._text = b""
        self._is_ended = False
        self._file_count = 0
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": lambda data, start, end: self._add_header(0, data[start:end]),
                "on_header_value": lambda data, start, end: self._add_header(1, data[start:end]),
                "on_header_end": self._end_header,
                "on_headers_finished": self._open,
                "on_part_data": lambda data, start, end: self._write(data[start:end]),
                "on_part_end": self._end,
                "on_end": self._end_form,
            },
        )

    def feed(self, chunk: bytes) -> None:
        try:
            self._parser.write(chunk)
        except MultipartParseError:
            raise _damaged() from None
        except OSError as error:
            reason = error.strerror or "it failed"
            raise StorageError(f"the upload cannot be kept on disk: {reason}") from error

    def finish(self) -> Upload:
        if not self._is_ended:
            raise _damaged()
        if not self.upload.files and self.upload.mapping is None:
            raise BadRequestError("the form has no file — send one as `data`, or by its type")
        return self.upload

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self) -> None:
        self._disposition, self._text = b"", b""

    def _add_header(self, part: int, data: bytes) -> None:
        self._header[part] += data

    def _end_header(self) -> None:
        if self._header[0].lower() == b"content-disposition":
            self._disposition = self._header[1]
        self._header = [b"", b""]

    def _open(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._field = options.get(b"name", b"").decode(errors="replace")
        if self._field not in _FIELDS and not self._field[:1].isupper():
            raise BadRequestError(
                f"the form has a field '{self._field[:80]}', expected the name of a type, or one "
                f"of {', '.join(_FIELDS)}"
            )
        if self._field == "directory":
            return
        self._file_count += 1
        if self._file_count > FILES_MAX:
            raise BadRequestError(f"the form has more than {FILES_MAX} files — send fewer at once")
        name = options.get(b"filename", b"").decode(errors="replace")
        if not name:
            raise BadRequestError(f"the field '{self._field[:80]}' is no file, or has no name")
        self._file = self.upload.spooled.create(name)
        if self._field == _MODELS:
            return  # the load finds it where it is: beside its files
        if self._field != "mapping":
            self.upload.files.append((self._field, self._file.name))
        elif self.upload.mapping is None:
            self.upload.mapping = self._file.name
        else:
            raise BadRequestError("the form has two mappings — send one")

    def _write(self, data: bytes) -> None:
        if self._file is not None:
            self._file.write(data)
            self.upload.size += len(data)
            return
        self._text += data
        if len(self._text) > _TEXT_BYTES_MAX:
            raise BadRequestError(f"the field '{self._field}' is too long")

    def _end(self) -> None:
        if self._file is None:
            with suppress(UnicodeDecodeError):
                name = self._text.decode()
                self.upload.directory = self.upload.spooled.locate(name)
                return
            raise BadRequestError("the field 'directory' is not UTF-8")
        self.close()

    def _end_form(self) -> None:
        self._is_ended = True


def _damaged() -> BadRequestError:
    return BadRequestError("the body is no form, or damaged or cut off — nothing was written")
