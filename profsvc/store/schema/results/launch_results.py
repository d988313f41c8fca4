"""Results of the analysis of launches: base tables and views."""

from collections.abc import Iterable

from profsvc.store.schema.column_types import (
    IDS_PER_UPLOAD,
    WHOLE_RUN_ID,
    Declared,
    fields,
    integer,
    key,
    real,
    ref,
    table,
)
from profsvc.store.schema.view_definition import (
    FLAG_NAMES_SQL,
    FLAGS,
    ViewDefinition,
    flag_names,
    text_of,
    view_columns,
)


def _result_table(name: str, keys: list[Declared], *values: Declared) -> Declared:
    """Return a table of results: one row per subject (launch, kernel or whole run), key and version of the analysis.

    The version is part of the key, so rows of older versions are kept with those of the newest.
    """
    return table(
        name,
        ref("run_id", "runs.run_id", cascade=True, primary_key=True),
        key("launch_id"),
        key("kernel_id"),
        *keys,
        ref("version_id", "texts.text_id", primary_key=True),
        *values,
        integer("flags", nullable=False),
        ref("reason_id", "texts.text_id"),
        clustered=True,
    )


criteria = _result_table(
    "criteria",
    [ref("criterion_id", "texts.text_id", primary_key=True)],
    *fields(
        "value float?, share float?, speedup float?, value_as_published float?, speedup_as_published float?",
        "value_conditional float?",
    ),
)

potential = _result_table(
    "potential",
    [],
    ref("bound_id", "texts.text_id"),
    ref("ideal_bound_id", "texts.text_id"),
    *fields(
        "mem_throughput_ratio float?, arith_throughput_ratio float?, speedup float?, speedup_as_published float?",
        "speedup_ceiling float?, ideal_ns float?, duration_ns float?, ceiling_flags int?",
        "speedup_low float?, speedup_high float?",
    ),
)

models = _result_table(
    "models",
    [ref("model_id", "model_names.model_id", primary_key=True)],
    real("value"),
    integer("label_id"),
)

causes = _result_table(
    "causes",
    [ref("cause_id", "cause_names.cause_id", primary_key=True)],
    *fields("rank int, saving_ns float?, saving_fraction float, low float?, high float?"),
)

RESULTS = {"criteria": criteria, "potential": potential, "models": models, "causes": causes}

# Totals over the launches of a kernel, of the newest version alone; see `profsvc.store.results.totals`.
_TOTALS = {
    "cause_totals": ("cause_id", "cause_names.cause_id", "launches int, saving_ns float?"),
    "criterion_totals": ("criterion_id", "texts.text_id", "value float?"),
}
RESULT_TOTALS = {
    name: table(
        name,
        ref("run_id", "runs.run_id", cascade=True, primary_key=True),
        key("kernel_id"),
        ref(own, target, primary_key=True),
        ref("version_id", "texts.text_id", nullable=False),
        *fields(values),
        clustered=True,
    )
    for name, (own, target, values) in _TOTALS.items()
}

CEILING_FLAGS = flag_names("c.ceiling_flags")

_SUBJECT = (
    f" LEFT JOIN launches l ON l.launch_id = c.launch_id"
    f" AND c.run_id = (SELECT o.run_id FROM uploads o WHERE o.upload_id = l.launch_id / {IDS_PER_UPLOAD})"
    " LEFT JOIN shapes h ON h.shape_id = l.shape_id"
    f" LEFT JOIN kernels k ON k.kernel_id = CASE c.kernel_id WHEN {WHOLE_RUN_ID} THEN h.kernel_id ELSE c.kernel_id END"
)

_RUN = ("run_id", "int", "c.run_id", "run number")

_SUBJECT_COLUMNS = view_columns(
    "k",
    ("launch_id", "int", "l.launch_id", "launch number; null for the whole run or for all launches of a kernel"),
    "kernel | text | full name of the kernel; null for the whole run",
    "kernel_short | text | kernel name without types and parameters",
)

_JUDGED = (
    ("flags", "text", FLAG_NAMES_SQL, f"data-quality warnings, separated by spaces: {' '.join(FLAGS)}"),
    ("reason", "text", text_of("c.reason_id"), "reason for a null value"),
    ("analysis_version", "text", text_of("c.version_id"), "version of the analysis"),
)


def _result_views(
    sentence: str, table: str, own: Iterable[tuple[str, str, str, str]], joins: str = ""
) -> dict[str, ViewDefinition]:
    """Return two views of a table of results: the rows of the newest analysis, and those of all analyses."""
    source = f"runs r JOIN {table} c ON c.run_id = r.run_id{{newest}}{_SUBJECT}{joins}"
    columns = (_RUN, *_SUBJECT_COLUMNS, *own, *_JUDGED)
    current = (
        "is_current",
        "int",
        "CASE WHEN c.version_id = r.version_id THEN 1 ELSE 0 END",
        "1 for the newest analysis, else 0",
    )
    return {
        f"v1_{table}": ViewDefinition(sentence, source.format(newest=" AND c.version_id = r.version_id"), columns),
        f"v1_{table}_history": ViewDefinition(
            f"The rows of v1_{table} from all versions of the analysis.",
            source.format(newest=""),
            (*columns, current),
        ),
    }


VIEW_DEFINITIONS: dict[str, ViewDefinition] = {
    **_result_views(
        "Optimization criteria of launches, kernels and whole runs, from the newest analysis.",
        "criteria",
        view_columns(
            "c",
            f"criterion | text | {text_of('c.criterion_id')} | name of the criterion",
            "value | float | 1 is ideal, 0 is worst; consistent form",
            "share | float | share of the execution time that the criterion covers",
            "speedup | float | potential speedup if the criterion became 1; consistent form",
            "value_as_published | float | value of the formula exactly as published",
            "speedup_as_published | float | value of the formula exactly as published",
            "value_conditional | float | the criterion without what others measure; null without the counters for it",
        ),
    ),
    **_result_views(
        "Potential speedups of launches, kernels and whole runs, from the newest analysis.",
        "potential",
        view_columns(
            "c",
            (
                f"bound | text | {text_of('c.bound_id')} | bottleneck: the busiest unit, or latency if no unit is "
                "saturated"
            ),
            f"ideal_bound | text | {text_of('c.ideal_bound_id')} | bottleneck of the ideal version",
            "mem_throughput_ratio | float | memory throughput as a share of its peak",
            "arith_throughput_ratio | float | arithmetic throughput as a share of its peak",
            "speedup | float | potential speedup, consistent form",
            "speedup_as_published | float | value of the formula exactly as published",
            "speedup_ceiling | float | upper limit for changes that keep algorithm, data types and units",
            "ideal_ns | float | time at the potential speedup",
            "duration_ns | float | measured duration",
            f"ceiling_flags | text | {CEILING_FLAGS} | data-quality warnings about speedup_ceiling, as in flags",
            "speedup_low | float | lower end of what eight of ten mended kernels of the first cause achieve",
            "speedup_high | float | upper end of it; null where no cause is known, for runs, and for bounds",
        ),
    ),
    **_result_views(
        "Quantities of performance models, from the newest analysis.",
        "models",
        view_columns(
            "q",
            "model | text | name of the model",
            "quantity | text | quantity that the model computes",
            "value | float | c.value | value, in unit",
            "unit | text | NULLIF(q.unit, '') | unit of value",
            "form | text | NULLIF(q.form, '') | as_published or consistent; for an input its source",
            f"label | text | {text_of('c.label_id')} | meaning of a coded value",
        ),
        " JOIN model_names q ON q.model_id = c.model_id",
    ),
    **_result_views(
        "Causes of lost time of launches and kernels with the time that each costs, from the newest analysis.",
        "causes",
        view_columns(
            "q",
            "rank | int | c.rank | 1 is the answer: the flaw that costs most, or the limit of a launch without one",
            "cause | text | identifier of the cause",
            "title | text | name of the cause",
            "kind | text | flaw, limit (nothing to gain there), alternative (what else rank 1 may mean) or unexplained",
            "saving_ns | float | c.saving_ns | time that removing the cause would save; 0 for an alternative",
            "saving_fraction | float | c.saving_fraction | share of the duration that removing the cause would save",
            "low | float | c.low | lower limit of saving_fraction; null without an ideal time",
            "high | float | c.high | upper limit of saving_fraction; null without an ideal time",
            "evidence | text | {evidence} | counters that show it, as JSON: a list of counter, value and unit",
            "first_step | text | what to do first",
        ),
        " JOIN cause_names q ON q.cause_id = c.cause_id",
    ),
}
