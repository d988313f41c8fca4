from .frames import (
    WideColumns as WideColumns,
    Wide as Wide,
    Batch as Batch,
    frame as frame,
    frame_of_arrays as frame_of_arrays,
    check as check,
    check_wide as check_wide,
    unpivot as unpivot,
)
from .schemas import (
    DTYPES as DTYPES,
    TABLES as TABLES,
    Column as Column,
    columns as columns,
)
