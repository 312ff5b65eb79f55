"""Merge text indexes: one index of the documents of several, without reading a text again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.index.addressed import Files, make_addresses, split_addresses
from omnigraph.index.arrays import AnyArray, expand_runs
from omnigraph.index.text_index import TextIndex, assemble
from omnigraph.index.text_words import Words, pack_words

_BETWEEN = pa.scalar("\0", pa.large_utf8())
"""Sorts before every character of a token, and is none of them."""


@dataclass(frozen=True, slots=True, eq=False)
class _Documents:
    """The documents that are kept of one index, and the numbers they get."""

    index: TextIndex
    kept: AnyArray
    numbers: AnyArray


def merge_text_indexes(parts: Sequence[tuple[TextIndex, Collection[Files]]]) -> TextIndex:
    """One index of some fragments of each of these; no fragment is wanted of two of them."""
    fragments = [each for index, wanted in parts for each in index.fragments if each in wanted]
    ids, order, merged = _number_documents(parts)
    stems, surfaces, form_numbers = _number_forms([index for index, _ in parts])
    columns = [_read_postings(*each) for each in zip(merged, form_numbers, strict=True)]
    forms, documents, counts, places = map(np.concatenate, zip(*columns, strict=True))
    by_form = np.argsort(forms.astype(np.uint64) << np.uint64(32) | documents.astype(np.uint64))
    ends = np.cumsum(counts)
    _, tokens = expand_runs((ends - counts)[by_form], ends[by_form])
    counts = counts[by_form]
    offsets = np.searchsorted(forms[by_form], np.arange(len(stems) + 1))
    return assemble(
        fragments,
        ids=pack_words(ids),
        stems=stems,
        surfaces=surfaces,
        addresses=np.concatenate([_move_addresses(each, fragments) for each in merged])[order],
        lengths=np.concatenate([each.index.lengths.at(each.kept) for each in merged])[order],
        offsets=offsets,
        documents=documents[by_form],
        counts=counts,
        place_offsets=np.concatenate([[0], np.cumsum(counts)])[offsets],
        places=places[tokens],
    )


def _number_documents(
    parts: Sequence[tuple[TextIndex, Collection[Files]]],
) -> tuple[pa.Array, AnyArray, list[_Documents]]:
    """The entity ids in order, the order, and the documents of each index."""
    kept = [_find_kept(index, wanted) for index, wanted in parts]
    taken = [index.ids.take(each) for (index, _), each in zip(parts, kept, strict=True)]
    ids = pa.concat_arrays(taken)
    order = pc.sort_indices(ids).to_numpy()
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    ends = np.cumsum([len(each) for each in kept])[:-1]
    merged = [
        _Documents(index, each, numbers)
        for (index, _), each, numbers in zip(parts, kept, np.split(number, ends), strict=True)
    ]
    return ids.take(pa.array(order)), order, merged


def _find_kept(index: TextIndex, wanted: Collection[Files]) -> AnyArray:
    if all(each in wanted for each in index.fragments):
        return np.arange(len(index))
    found = [
        index.documents_of_fragment(number)
        for number, each in enumerate(index.fragments)
        if each in wanted
    ]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *found]))


def _number_forms(indexes: Sequence[TextIndex]) -> tuple[Words, Words, list[AnyArray]]:
    """Stems and surfaces of all of them, and for each index the new number of its forms."""
    joined = [
        pc.binary_join_element_wise(each.stems.to_array(), each.surfaces.to_array(), _BETWEEN)
        for each in indexes
    ]
    encoded = pa.chunked_array(joined, pa.large_utf8()).dictionary_encode().combine_chunks()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    numbers = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    pairs = pc.split_pattern(encoded.dictionary.take(order), _BETWEEN.as_py())
    words = pairs.flatten()
    both = [words.take(pa.array(np.arange(side, len(words), 2))) for side in (0, 1)]
    ends = np.cumsum([len(each) for each in joined])[:-1]
    return pack_words(both[0]), pack_words(both[1]), np.split(numbers, ends)


def _read_postings(documents: _Documents, forms: AnyArray) -> tuple[AnyArray, ...]:
    """Form, document and count of every posting that is kept, and the places of its tokens."""
    index = documents.index
    number = np.full(len(index), -1, dtype=np.int64)
    number[documents.kept] = documents.numbers
    posting_forms = np.repeat(forms, np.diff(index.offsets.all()))
    found, counts = number[index.documents.all()], index.counts.all().astype(np.int64)
    places = index.places.all()
    if len(documents.kept) == len(index):
        return posting_forms, found, counts, places
    is_kept = found >= 0
    places = places[np.repeat(is_kept, counts)]
    return posting_forms[is_kept], found[is_kept], counts[is_kept], places


def _move_addresses(documents: _Documents, fragments: Sequence[Files]) -> AnyArray:
    """The addresses of the kept documents, by the new numbers of their fragments."""
    number = {each: place for place, each in enumerate(fragments)}
    moved = np.array([number.get(each, 0) for each in documents.index.fragments], dtype=np.uint64)
    old, rows = split_addresses(documents.index.addresses.at(documents.kept))
    return make_addresses(moved[old], rows)
