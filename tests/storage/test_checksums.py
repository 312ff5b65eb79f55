"""Checksums of files, and the records of them: what is torn is told from what is damaged."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from omnigraph.storage.checksum_records import Record, decode_records, encode_record, fold_records
from omnigraph.storage.checksums import (
    CHUNK_BYTES,
    Checksum,
    checksum_chunks,
    checksum_file,
    read_chunks,
)
from omnigraph.storage.listing import Files

ONE = Record(1, {"data/a.lance": Checksum(7, "crc32:00000001")})
TWO = Record(2, {"data/b.lance": Checksum(8, "crc32:00000002"), "x": Checksum(0, "etag:a-2")})
SIZES = [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES + 5]
LINES = encode_record(ONE) + encode_record(TWO)


def test_records_come_back_as_they_were_written() -> None:
    read = decode_records(LINES)

    assert (read.records, read.torn, read.damaged) == ((ONE, TWO), 0, 0)


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80, 0xFF])
def test_a_flipped_byte_anywhere_in_a_log_is_damage(flip: int) -> None:
    for place in range(len(LINES)):
        read = decode_records(LINES[:place] + bytes([LINES[place] ^ flip]) + LINES[place + 1 :])

        assert read.damaged >= 1, place
        assert all(each in (ONE, TWO) for each in read.records)


def test_what_a_power_cut_leaves_of_a_log_is_torn_not_damaged() -> None:
    first = len(encode_record(ONE))
    for end in range(first, len(LINES)):
        for left in (LINES[:end], LINES[:end].ljust(len(LINES) + 20, b"\0")):
            read = decode_records(left)
            assert (read.records, read.damaged) == ((ONE,), 0), end
            # The next writer appends to what is there.
            later = decode_records(left + encode_record(TWO))
            assert (later.records, later.damaged) == ((ONE, TWO), 0), end


def test_folding_keeps_the_newest_of_what_is_there() -> None:
    newer = Record(3, {"data/a.lance": Checksum(9, "crc32:00000009")})

    folded = fold_records([newer, TWO, ONE], {"data/a.lance": None, "x": None})

    assert folded == Record(3, {"data/a.lance": newer.files["data/a.lance"], "x": TWO.files["x"]})


@pytest.mark.parametrize("size", SIZES)
def test_a_file_is_read_whole(tmp_path: Path, size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    (tmp_path / "file").write_bytes(data)

    assert Files(str(tmp_path)).read("file") == data


@pytest.mark.parametrize("size", SIZES)
def test_a_checksum_is_of_all_the_bytes(tmp_path: Path, size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    (tmp_path / "file").write_bytes(data)

    found = checksum_file(str(tmp_path), "file")

    assert found == Checksum(size, f"crc32:{zlib.crc32(data):08x}")
    for place in {0, size // 2, size - 1} if size else ():
        flipped = bytearray(data)
        flipped[place] ^= 1
        (tmp_path / "file").write_bytes(flipped)
        chunks = list(read_chunks(str(tmp_path / "file")))
        again = checksum_chunks([bytes(flipped)], str(tmp_path), "file")
        assert sum(map(len, chunks)) == size
        assert found != checksum_file(str(tmp_path), "file") == again
