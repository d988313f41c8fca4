"""On a server rows of rules and results refer to nothing: to look up four others took six sevenths of writing one."""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

# Table, column, the table and the column that it referred to, and whether rows were deleted with it.
REFERENCES = (
    *((table, "run_id", "runs", "run_id", True) for table in ("causes", "criteria", "models", "potential")),
    *((table, "version_id", "texts", "text_id", False) for table in ("causes", "criteria", "models", "potential")),
    *(
        (table, "reason_id", "texts", "text_id", False)
        for table in ("causes", "counters", "criteria", "models", "potential")
    ),
    ("causes", "cause_id", "cause_names", "cause_id", False),
    ("counters", "counter_id", "texts", "text_id", False),
    ("counters", "expression_id", "texts", "text_id", False),
    ("criteria", "criterion_id", "texts", "text_id", False),
    ("models", "model_id", "model_names", "model_id", False),
    ("potential", "bound_id", "texts", "text_id", False),
    ("potential", "ideal_bound_id", "texts", "text_id", False),
    *(("rules", f"{name}_id", "texts", "text_id", False) for name in ("kind", "rule", "rule_type", "section")),
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table, column, *_ in REFERENCES:
            op.drop_constraint(op.f(f"fk_{table}_{column}"), table)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table, column, target, key, cascade in REFERENCES:
            name = op.f(f"fk_{table}_{column}")
            op.create_foreign_key(name, table, target, [column], [key], ondelete="CASCADE" if cascade else None)
