"""The view of predictions: a speedup that was foretold of a kernel, beside the one that a later run achieved."""

from profsvc.store.shapes import Shape, text_of

BOUND = -1
"""What ``scored`` is in the base table where the pair is comparable, but what was foretold is no more than a bound."""
PARTS = ("criterion", "model", "global", "local")
"""Kinds that claim what one mechanism, or one model's view of a launch, would bring: never the whole change."""
PART = "it claims what one mechanism alone would bring, not what the whole change does"
_KIND = text_of("c.kind_id")
# A pair of runs that can be compared counts if the kernel changed between them, for what claims the whole change.
_LEFT_OUT = (
    f"CASE WHEN c.scored = 0 THEN 'not comparable' WHEN c.scored = {BOUND} THEN 'bound'"
    f" WHEN {_KIND} IN ({', '.join(map(repr, PARTS))}) THEN 'part'"
    " WHEN c.changed = 0 THEN 'unchanged' WHEN c.changed IS NULL THEN 'unknown' END"
)
SHAPES = {
    "v1_predictions": Shape(
        "A speedup that was foretold of a kernel, and the one that a later run achieved.",
        "predictions c JOIN runs b ON b.run_id = c.run_before JOIN runs a ON a.run_id = c.run_after"
        " JOIN kernels k ON k.kernel_id = c.kernel_before_id JOIN kernels m ON m.kernel_id = c.kernel_after_id",
        (
            ("prediction_id", "int", "c.prediction_id", "number of the row; another one when the pair is made anew"),
            ("project", "text", "b.project", "project of the run before"),
            ("run_before", "int", "c.run_before", "the run that it was foretold of"),
            ("name_before", "text", "b.name", "its name"),
            ("run_after", "int", "c.run_after", "the run that achieved what it did"),
            ("name_after", "text", "a.name", "its name"),
            ("kernel_before", "text", "k.kernel", "full name of the kernel before"),
            ("kernel_after", "text", "m.kernel", "full name of the kernel after"),
            ("device", "text", text_of("c.device_id"), "device of the run before"),
            ("source", "text", text_of("c.source_id"), "who foretold it: profsvc, or the tool whose rules did"),
            (
                "kind",
                "text",
                text_of("c.kind_id"),
                "overall, ceiling, criterion or model; of a tool's rules global (of the kernel's time) or local",
            ),
            ("criterion", "text", text_of("c.criterion_id"), "overall, or the name of the criterion, model or rule"),
            ("predicted", "float", "c.predicted", "speedup foretold"),
            ("achieved", "float", "c.achieved", "mean time of a launch before over that after"),
            ("value_before", "float", "c.value_before", "the criterion before; null of what is none"),
            ("value_after", "float", "c.value_after", "the criterion after"),
            ("before_ns", "float", "c.before_ns", "mean time of a launch before"),
            ("after_ns", "float", "c.after_ns", "mean time of a launch after"),
            ("matched_by", "text", text_of("c.matched_by_id"), "how the two kernels were found to be one"),
            (
                "same_work",
                "text",
                text_of("c.same_work_id"),
                "why both do the same work: map (somebody said so), threads (as many a launch); null if unknown",
            ),
            ("changed", "int", "c.changed", "1 if the kernel is another one in the run after, else 0; null if unknown"),
            ("changed_because", "text", text_of("c.changed_because_id"), "what says so, or why nothing does"),
            (
                "scored",
                "int",
                f"CASE WHEN {_LEFT_OUT} IS NULL THEN 1 ELSE 0 END",
                "1 if it counts for the accuracy, else 0",
            ),
            (
                "left_out",
                "text",
                _LEFT_OUT,
                "why not, in a word: not comparable (other work, device or tool), bound (foretold is only what it is "
                "at least or at most), part (a single criterion, model or rule), unchanged (the kernel is the same), "
                "unknown (nothing says whether it changed)",
            ),
            (
                "reason",
                "text",
                "CASE WHEN c.scored = 1 AND "
                + _KIND
                + f" IN ({', '.join(map(repr, PARTS))}) THEN '{PART}' ELSE "
                + text_of(
                    "CASE WHEN c.scored <= 0 THEN c.reason_id"
                    " WHEN c.changed = 1 THEN NULL ELSE c.changed_because_id END"
                )
                + " END",
                "why it does not count, in a sentence",
            ),
            ("analysis_version", "text", text_of("c.analysis_version_id"), "version of the analysis that foretold it"),
            ("made_at", "text", "c.made_at", "when the two runs were compared, UTC, ISO 8601"),
        ),
    )
}
