from . import (
    file_batches as file_batches,
    reparsing as reparsing,
)
