from .column_tables import (
    CodedTexts as CodedTexts,
    ColumnTable as ColumnTable,
    Table as Table,
    as_frames as as_frames,
    frame_of as frame_of,
    nulls as nulls,
    numbers_of as numbers_of,
)
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
