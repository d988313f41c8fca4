"""The dashboards for Grafana: each query is answered by Postgres as the role of a reader, with the macros expanded.

The macros are expanded as Grafana's Postgres data source does: their arguments end at the first closing parenthesis.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import yaml

from profsvc import pipeline, store
from tests.conftest import ROOT
from tests.environment.postgres import Server, migrated
from tests.inputs.nights import report_of_night

FOLDER = ROOT / ".deploy" / "grafana"
BOARDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("dashboards/*.json"))}
PANELS = [
    pytest.param(board, panel, id=f"{name}-{panel['title']}")
    for name, board in BOARDS.items()
    for panel in board["panels"]
]
NOW = datetime.now(UTC)
FROM, TO = datetime(2020, 1, 1, tzinfo=UTC), NOW + timedelta(days=1)
MACRO = re.compile(r"\$__(\w+)\(([^)]*)\)")
SECONDS = {"1h": 3600, "1d": 86400, "'1h'": 3600, "'1d'": 86400}


def expanded(sql: str, values: dict[str, str]) -> str:
    """Return the SQL that Grafana sends, for the time range and the values of the variables."""

    def macro(found: re.Match[str]) -> str:
        name, arguments = found[1], [part.strip() for part in found[2].split(",")]
        if name == "timeFilter":
            return f"{arguments[0]} BETWEEN '{FROM.isoformat()}' AND '{TO.isoformat()}'"
        if name in ("timeGroup", "timeGroupAlias"):
            size = SECONDS[arguments[1]]
            alias = ' AS "time"' if name == "timeGroupAlias" else ""
            return f"floor(extract(epoch from {arguments[0]})/{size})*{size}{alias}"
        assert name in ("unixEpochNanoFrom", "unixEpochNanoTo"), f"{name} is no macro that is expanded here"
        return str(int((FROM if name.endswith("From") else TO).timestamp()) * 10**9)

    for name, value in values.items():
        sql = sql.replace(f"${{{name}:sqlstring}}", value).replace(f"${{{name}}}", value)
    sql = MACRO.sub(macro, sql.replace("$__interval", "1h"))
    assert "$" not in sql, sql
    return sql


@pytest.fixture(scope="module")
def reader(postgres_server: Server) -> Iterator[str]:
    """The URL of a reader of a store with a profile, a power log, a refused file and a nightly report."""
    database = migrated(postgres_server)
    engine = store.open_store(postgres_server.url(database).render_as_string(hide_password=False), pooled=True)
    files = ("ncu_raw/plain.csv", "held_out/power_marks.csv", "nvidia_smi/bursts.csv", "ncu_raw/rejects.csv")
    for name in files:
        path = ROOT / "fixtures" / name
        if path.exists():
            with path.open("rb") as stream:
                info = store.RunInfo(project="lab", name=path.stem)
                pipeline.ingest(engine, stream, path.name, info, pipeline.ReadOptions(zone="UTC"))
    report_of_night(engine)
    engine.dispose()
    url = postgres_server.admin.set(drivername="postgresql+psycopg", database=database)
    superuser = store.connect(url.render_as_string(hide_password=False))
    made = store.create_reader(superuser, f"grafana_{database}")
    superuser.dispose()
    yield made.url
    with postgres_server.session(database) as session:
        session.execute(f"DROP OWNED BY {made.name}; DROP ROLE {made.name}")
    postgres_server.drop(database)


def values_of(board: dict[str, Any], session: "psycopg.Connection[Any]") -> dict[str, str]:
    """Ask the variables of a dashboard, one after the other as Grafana does; all values of those that take several."""
    values: dict[str, str] = {}
    for variable in board["templating"]["list"]:
        found = [row[0] for row in session.execute(expanded(variable["query"], values)).fetchall()]
        assert found, f"the variable {variable['name']} has no value"
        values[variable["name"]] = ", ".join(f"'{text}'" for text in found) if variable["multi"] else str(found[0])
    return values


@pytest.mark.parametrize(("board", "panel"), PANELS)
def test_postgres_answers_every_panel(reader: str, board: dict[str, Any], panel: dict[str, Any]) -> None:
    with psycopg.connect(reader) as session:
        values = values_of(board, session)
        for target in panel["targets"]:
            answer = session.execute(expanded(target["rawSql"], values))
            columns = [column.name for column in answer.description or ()]
            rows = answer.fetchall()
            if target["format"] == "time_series":
                assert columns == ["time", "metric", "value"]
            if panel["title"] in WITH_ROWS:
                assert rows, "the panel is empty"


WITH_ROWS = {
    "Mean time per launch", "GPU time of runs per day", "Files stored per hour", "Share of rejected lines",
    "Nightly reports", "Power of the run",
}  # fmt: skip


def test_dashboards_name_only_what_they_have() -> None:
    assert set(BOARDS) == {"profsvc-history", "profsvc-power", "profsvc-health"}
    (source,) = yaml.safe_load((FOLDER / "datasources.yaml").read_text(encoding="utf-8"))["datasources"]
    assert yaml.safe_load((FOLDER / "dashboards.yaml").read_text(encoding="utf-8"))["providers"]
    assert {panel["title"] for board in BOARDS.values() for panel in board["panels"]} >= WITH_ROWS
    for name, board in BOARDS.items():
        assert board["uid"] == name
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
        assert len(set(places)) == len(places)
        asked = {part["datasource"]["uid"] for part in (*board["panels"], *board["templating"]["list"])}
        assert asked == {source["uid"]}
        used = set(re.findall(r"\$\{(\w+)", json.dumps(board)))
        assert used <= {variable["name"] for variable in board["templating"]["list"]}


def test_an_unknown_macro_would_be_noticed() -> None:
    with pytest.raises(AssertionError, match="no macro"):
        expanded("SELECT $__timeFoo(x)", {})
    with pytest.raises(AssertionError):
        expanded("SELECT ${missing}", {})
