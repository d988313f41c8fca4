"""Convert columns of frames to Python values, and their texts to codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from profsvc.store.ingest.inserts.postgres_copy import is_null
from profsvc.tables import CodedTexts
from profsvc.tables.column_tables import Integers
from profsvc.tables.on_demand import pd


def object_ids(texts: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the identity of the object in each cell; the column must outlive the result."""
    return np.frombuffer(texts.tobytes(), np.intp)


def factorize(
    column: pd.Series[Any] | pd.api.extensions.ExtensionArray | npt.NDArray[Any] | CodedTexts,
) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Return the code of each cell, -1 for null, and the distinct texts in the order of their codes.

    Readers use the same object for equal texts, so hardly any text needs to be compared.

    >>> factorize(pd.Series(["b", None, "a", "b"]).astype(object))
    (array([ 0, -1,  1,  0]), ['b', 'a'])
    """
    if isinstance(column, CodedTexts):
        return _distinct_texts(column)
    texts: npt.NDArray[np.object_] = np.asarray(column, dtype=object)
    if not any(texts.strides) and len(texts):  # one cell that represents all
        missing = texts[0] is None
        return np.full(len(texts), -1 if missing else 0), [] if missing else [texts[0]]
    _, first, codes = np.unique(object_ids(texts), return_index=True, return_inverse=True)
    numbers: dict[str, int] = {}
    own = np.empty(len(first), np.intp)
    for code in np.argsort(first).tolist():  # in the order in which the texts occur
        text = texts[first[code]]
        own[code] = -1 if is_null(text) else numbers.setdefault(text, len(numbers))
    return own[codes], list(numbers)


def _distinct_texts(column: CodedTexts) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Return codes of distinct texts that occur, from those of texts of which some may repeat or not occur."""
    codes = column.codes.astype(np.intp, copy=False)
    if len(codes) and not any(codes.strides):  # one cell that represents all
        return codes, list(column.texts)
    present = np.bincount(codes + 1, minlength=len(column.texts) + 1)[1:] > 0
    numbers: dict[str, int] = {}
    own = [numbers.setdefault(text, len(numbers)) if there else -1
           for text, there in zip(column.texts, present.tolist(), strict=True)]  # fmt: skip
    if own == list(range(len(own))):
        return codes, list(column.texts)
    return np.array([*own, -1])[codes], list(numbers)


def factorize_numbers(numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the code of each number, and the distinct numbers in ascending order.

    Numbers from a dictionary lie close to each other, and are then counted instead of compared.

    >>> factorize_numbers(np.array([7, 5, 7]))
    (array([1, 0, 1]), array([5, 7]))
    """
    if is_constant(numbers):
        return np.zeros(len(numbers), np.int64), numbers[:1].copy()
    least = int(numbers.min()) if len(numbers) else 0
    if not len(numbers) or int(numbers.max()) - least > 2 * len(numbers):
        found, codes = np.unique(numbers, return_inverse=True)
        return codes.astype(np.int64, copy=False), found
    places = numbers - least
    present = np.bincount(places) > 0
    found = np.flatnonzero(present)
    return (np.cumsum(present) - 1)[places], found + least


def is_constant(column: npt.NDArray[Any]) -> bool:
    """Return whether all values are equal to the first; an empty column is not."""
    return len(column) > 0 and column[-1] == column[0] and bool((column == column[0]).all())


def values(column: Any) -> list[Any]:
    """Return a column as Python values with None for null: a series, an array of numbers, or any sized iterable.

    >>> values(pd.Series([1, None], dtype="Int64")), values(pd.Series([1.5, float("nan")])), values(range(2))
    ([1, None], [1.5, None], [0, 1])
    """
    if isinstance(column, list | range):
        return list(column)
    if isinstance(column, CodedTexts | Integers):
        return list(column.tolist())
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        found: list[Any] = column.tolist()
        return [None if value != value else value for value in found] if column.dtype.kind == "f" else found
    if isinstance(column, np.ndarray | Sequence):
        return [None if is_null(value) else value for value in column]
    if not isinstance(column, pd.Series):
        column = pd.Series(column)
    if not column.hasnans:
        return list(column.to_numpy().tolist())
    if column.isna().all():
        return [None] * len(column)
    plain = column.to_numpy(dtype=object, copy=True)
    plain[column.isna().to_numpy()] = None
    return list(plain.tolist())
