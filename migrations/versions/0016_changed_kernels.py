"""Predictions say whether the kernel changed between the two runs; those that are there are looked at."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STEP = 1_000_000_000
SHAPE = (
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread"),
    *("shared_mem_static_bytes", "shared_mem_dynamic_bytes"),
)
EXECUTED = "inst_executed_warp"
COUNTED = (
    *(EXECUTED, "thread_inst_executed_pred_on", "global_load_sectors", "global_theoretical_sectors"),
    *("shared_wavefronts_sass", "registers_per_thread", "shared_mem_static_bytes", "shared_mem_dynamic_bytes"),
)
OF_RUN = (
    "FROM uploads u JOIN launches l"
    f" ON l.launch_id BETWEEN u.upload_id * {STEP} AND u.upload_id * {STEP} + {STEP - 1}"
    " JOIN shapes h ON h.shape_id = l.shape_id"
)
SHAPES = sa.text(
    f"SELECT h.kernel_id, count(*) AS launches, {', '.join(f'min({c}) AS a{c}, max({c}) AS b{c}' for c in SHAPE)}"
    f" {OF_RUN} WHERE u.run_id = :run_id AND u.same_as IS NULL GROUP BY h.kernel_id"
)
COUNTERS = sa.text(
    "SELECT h.kernel_id, x.text AS counter, c.expression_id, min(c.value) AS least, max(c.value) AS most"
    f" {OF_RUN} JOIN counters c ON c.launch_id = l.launch_id JOIN texts x ON x.text_id = c.counter_id"
    " WHERE u.run_id = :run_id AND x.text IN :counters AND c.value IS NOT NULL"
    " GROUP BY h.kernel_id, x.text, c.expression_id"
).bindparams(sa.bindparam("counters", list(COUNTED), expanding=True))
BUILDS = sa.text(
    "SELECT r.commit_id, (SELECT t.value FROM run_tags t WHERE t.run_id = r.run_id AND t.key = 'binary') AS tag"
    " FROM runs r WHERE r.run_id = :run_id"
)
PAIRS = sa.text(
    "SELECT DISTINCT p.run_before, p.run_after, p.kernel_before_id, p.kernel_after_id, x.text AS matched_by"
    " FROM predictions p JOIN texts x ON x.text_id = p.matched_by_id"
    " ORDER BY p.run_before, p.run_after, p.kernel_before_id, p.kernel_after_id"
)
KEEP = sa.text(
    "UPDATE predictions SET changed = :changed, changed_because_id = :because WHERE run_before = :run_before"
    " AND run_after = :run_after AND kernel_before_id = :kernel_before_id AND kernel_after_id = :kernel_after_id"
)


def traits(bind, run_id):
    found = {}
    for row in bind.execute(SHAPES, {"run_id": run_id}).mappings():
        ends = {(name, None): (row[f"a{name}"], row[f"b{name}"]) for name in SHAPE}
        found[row["kernel_id"]] = row["launches"], {name: e for name, e in ends.items() if e[0] is not None}
    for row in bind.execute(COUNTERS, {"run_id": run_id}).mappings():
        if row["kernel_id"] in found:
            found[row["kernel_id"]][1][row["counter"], row["expression_id"]] = row["least"], row["most"]
    return found, bind.execute(BUILDS, {"run_id": run_id}).one()


def differs(name, one, two):
    most = 0.005 if name.endswith("_bytes") else 0
    return any(abs(a - b) > most * max(abs(a), abs(b)) for a, b in zip(one, two, strict=True))


def judged(pair, old, new):
    if pair["matched_by"] == "map" and pair["kernel_before_id"] != pair["kernel_after_id"]:
        return 1, "it was said what became of it"
    (launches, before), (others, after) = (
        one[0].get(pair[kernel], (0, {})) for one, kernel in ((old, "kernel_before_id"), (new, "kernel_after_id"))
    )
    alike = launches == others
    shared = [
        name
        for name in before
        if name in after and (alike or (before[name][0] == before[name][1] and after[name][0] == after[name][1]))
    ]
    other = {name[0] for name in shared if differs(name[0], before[name], after[name])}
    builds = old[1], new[1]
    if builds[0].tag is not None and builds[0].tag == builds[1].tag and not other & set(SHAPE):
        return 0, "both runs are of one binary, and launch it alike"
    if other:
        return 1, f"other counters: {', '.join(sorted(other))}"
    if EXECUTED in {name for name, _ in shared}:
        return 0, "it executes as many instructions and moves as much in both runs, and is launched alike"
    for one, two in ((builds[0].tag, builds[1].tag), (builds[0].commit_id, builds[1].commit_id)):
        if None not in (one, two):
            return int(one != two), f"{json.dumps(one)} before and {json.dumps(two)} after"
    return None, "no counter of both runs says what the kernel executes, and not both name their binary"


def number_of(bind, words):
    query = sa.text("SELECT text_id FROM texts WHERE text = :words")
    found = bind.execute(query, {"words": words}).scalar()
    if found is None:
        bind.execute(sa.text("INSERT INTO texts (text) VALUES (:words)"), {"words": words})
        found = bind.execute(query, {"words": words}).scalar_one()
    return found


def upgrade() -> None:
    for name in ("changed", "changed_because_id"):
        op.add_column("predictions", sa.Column(name, INT, nullable=True))
    bind, known = op.get_bind(), {}
    for pair in bind.execute(PAIRS).mappings().all():
        runs = pair["run_before"], pair["run_after"]
        # Pairs come in the order of the run before; what is known of more than a few runs would fill the memory.
        known = {run_id: one for run_id, one in known.items() if run_id in runs}
        for run_id in runs:
            known[run_id] = known.get(run_id) or traits(bind, run_id)
        changed, because = judged(pair, *(known[run_id] for run_id in runs))
        keys = ("run_before", "run_after", "kernel_before_id", "kernel_after_id")
        bind.execute(
            KEEP, {"changed": changed, "because": number_of(bind, because), **{name: pair[name] for name in keys}}
        )


def downgrade() -> None:
    for name in ("changed_because_id", "changed"):
        op.drop_column("predictions", name)
