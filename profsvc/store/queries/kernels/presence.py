"""Whether a run has averages of kernels: most have none, and reading them needs frames."""

from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

TOOL = "nvprof"
ROWS_OF_MEANS = (
    "FROM uploads u JOIN metrics m ON m.launch_ref = u.upload_id * :step JOIN kernels k ON"
    " k.kernel_id = m.kernel_id JOIN metric_names n ON n.metric_id = m.metric_id"
    " WHERE u.run_id = :run_id AND u.tool = :tool AND n.statistic = 'avg' AND m.value IS NOT NULL"
)
_HAS_MEANS = text(f"SELECT count(*) FROM (SELECT 1 {ROWS_OF_MEANS} LIMIT 1) found")


def has_kernel_metrics(engine: Engine, run_id: int) -> bool:
    """Return whether `profsvc.store.queries.kernels.means.kernel_metrics` has rows of a run."""
    with reading(engine) as connection:
        values = {"run_id": run_id, "step": IDS_PER_UPLOAD, "tool": TOOL}
        return bool(connection.execute(_HAS_MEANS, values).scalar_one())
