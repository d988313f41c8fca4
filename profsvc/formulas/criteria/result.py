"""The result that most criteria share."""

from typing import NamedTuple

import numpy as np

from profsvc.formulas.numerics.arrays import Array, Bools, Mask, Share, arrays, clip_to_unit, mask
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.speedup import amdahl


class Criterion(NamedTuple):
    """A criterion, the time share that limits its speedup, and the speedup."""

    raw: Array
    value: Array
    share: Array
    speedup: Array
    flags: Mask


def _range_flags(raw: Array, value: Array) -> Mask:
    return mask(
        (Flag.RAW_OUT_OF_RANGE, (raw < 0) | (raw > 1)),
        (Flag.CLIPPED, (value != raw) & ~np.isnan(raw) & ~np.isnan(value)),
    )


def _published(raw: Array, share: Array, speedup: Array, flags: Mask) -> Criterion:
    return Criterion(*arrays(raw, raw, share, speedup, flags | _range_flags(raw, raw)))


def _consistent(raw: Array, share: Share, flags: Mask, unused: Bools | None = None) -> Criterion:
    """Clip the criterion, and take its speedup from the share; where the resource is unused both are neutral."""
    none = np.zeros((), dtype=np.bool_) if unused is None else unused
    value = np.where(none, 1.0, clip_to_unit(raw))
    p = np.where(none, 0.0, share.value)
    flags = np.asarray(
        flags | np.where(none, np.uint32(0), share.flags) | mask((Flag.NOT_APPLICABLE, none)) | _range_flags(raw, value)
    )
    return Criterion(*arrays(raw, value, p, amdahl(p, value), flags))
