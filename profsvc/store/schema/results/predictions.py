"""The base table of predictions; a part of `profsvc.store.schema.tables`. Texts stand as numbers of ``texts``."""

from profsvc.store.schema.column_types import fields, ref, row_id, table
from profsvc.store.schema.view_definition import ViewDefinition, text_of, view_columns

TEXT_COLUMNS = (
    "device", "source", "kind", "criterion", "matched_by", "same_work", "reason", "analysis_version", "changed_because"
)  # fmt: skip
"""Columns that contain the number of a text; in the table their names end in ``_id``."""
REQUIRED_TEXTS = {"source", "kind", "criterion", "matched_by"}

predictions = table(
    "predictions",
    row_id("prediction_id"),
    ref("run_before", "runs.run_id", cascade=True, nullable=False, index=True),
    ref("run_after", "runs.run_id", cascade=True, nullable=False, index=True),
    ref("kernel_before_id", "kernels.kernel_id", nullable=False),
    ref("kernel_after_id", "kernels.kernel_id", nullable=False),
    *(ref(f"{name}_id", "texts.text_id", nullable=name not in REQUIRED_TEXTS) for name in TEXT_COLUMNS[:-1]),
    *fields(
        "predicted float, achieved float, value_before float?, value_after float?, before_ns float, after_ns float",
        "scored int, made_at text, changed int?, changed_because_id int?",
    ),
    sqlite_autoincrement=True,
)

SCORED_AS_BOUND = -1
"""Value of ``scored`` in the base table for a comparable pair whose prediction is only a bound."""

PARTIAL_KINDS = ("criterion", "model", "global", "local")
"""Kinds that predict the effect of one mechanism or model, never that of the whole change."""

PARTIAL_REASON = "it predicts the effect of one mechanism, not of the whole change"

_KIND = text_of("c.kind_id")


# A comparable pair is scored only if the kernel changed and the prediction covers the whole change.
_EXCLUSION = (
    f"CASE WHEN c.scored = 0 THEN 'not comparable' WHEN c.scored = {SCORED_AS_BOUND} THEN 'bound'"
    f" WHEN {_KIND} IN ({', '.join(map(repr, PARTIAL_KINDS))}) THEN 'part'"
    " WHEN c.changed = 0 THEN 'unchanged' WHEN c.changed IS NULL THEN 'unknown' END"
)

VIEW_DEFINITIONS = {
    "v1_predictions": ViewDefinition(
        "Predicted speedups of kernels, with the speedup that a later run achieved.",
        "predictions c JOIN runs b ON b.run_id = c.run_before JOIN runs a ON a.run_id = c.run_after"
        " JOIN kernels k ON k.kernel_id = c.kernel_before_id JOIN kernels m ON m.kernel_id = c.kernel_after_id",
        view_columns(
            "c",
            "prediction_id | int | prediction number; it changes when the pair is compared again",
            "project | text | b.project | project of the earlier run",
            "run_before | int | earlier run, for which the speedup was predicted",
            "name_before | text | b.name | name of the earlier run",
            "run_after | int | later run, which gives the achieved speedup",
            "name_after | text | a.name | name of the later run",
            "kernel_before | text | k.kernel | full name of the kernel in the earlier run",
            "kernel_after | text | m.kernel | full name of the kernel in the later run",
            f"device | text | {text_of('c.device_id')} | device of the earlier run",
            f"source | text | {text_of('c.source_id')} | source of the prediction: profsvc, or the tool with the rule",
            (
                f"kind | text | {text_of('c.kind_id')} | overall, ceiling, criterion or model; for a tool's rule "
                "global (of the kernel time) or local"
            ),
            f"criterion | text | {text_of('c.criterion_id')} | overall, or the name of the criterion, model or rule",
            "predicted | float | predicted speedup",
            "achieved | float | achieved speedup: before_ns / after_ns",
            "value_before | float | criterion value in the earlier run; null for other kinds",
            "value_after | float | criterion value in the later run",
            "before_ns | float | mean duration of a launch in the earlier run",
            "after_ns | float | mean duration of a launch in the later run",
            f"matched_by | text | {text_of('c.matched_by_id')} | how the two kernels were matched",
            (
                f"same_work | text | {text_of('c.same_work_id')} | evidence for equal work: map (given by a user), "
                "threads (as many per launch); null if unknown"
            ),
            "changed | int | 1 if the kernel changed in the later run, else 0; null if unknown",
            (
                f"changed_because | text | {text_of('c.changed_because_id')} | evidence for the change, or why it "
                "is unknown"
            ),
            f"scored | int | CASE WHEN {_EXCLUSION} IS NULL THEN 1 ELSE 0 END | 1 if scored in the accuracy, else 0",
            (
                "left_out",
                "text",
                _EXCLUSION,
                "why it is not scored: not comparable (other work, device or tool), bound (the prediction is only a "
                "lower or upper bound), part (a single criterion, model or rule), unchanged (the kernel is the same), "
                "unknown (no evidence whether the kernel changed)",
            ),
            (
                "reason",
                "text",
                "CASE WHEN c.scored = 1 AND "
                + _KIND
                + f" IN ({', '.join(map(repr, PARTIAL_KINDS))}) THEN '{PARTIAL_REASON}' ELSE "
                + text_of(
                    "CASE WHEN c.scored <= 0 THEN c.reason_id"
                    " WHEN c.changed = 1 THEN NULL ELSE c.changed_because_id END"
                )
                + " END",
                "why it is not scored, as a sentence",
            ),
            f"analysis_version | text | {text_of('c.analysis_version_id')} | version of the analysis that predicted it",
            "made_at | text | time of the comparison, UTC, ISO 8601",
        ),
    )
}
