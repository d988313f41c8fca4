"""Inputs are checked once: what is wrong is said with what was seen and what is allowed."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Input
from profsvc.views.calculators.values import check, checked_values, value_of

CLOCK = Input("clock", "Clock", unit="MHz", above=0)
COUNT = Input("sms", "SMs", "integer", minimum=1, maximum=200)
LIST = Input("loads", "Loads", "numbers", unit="W")
TABLE = Input(
    "table",
    "Kernels",
    "table",
    columns=(
        Input("kernel", "Kernel", "text"),
        Input("power", "Power", unit="W", above=0),
        Input("idle", "Idle power", unit="W", default="3"),
        Input("note", "Note", "text", default=""),
    ),
)
COUNTERS = TABLE._replace(more_columns="Access rate")
MODEL = Calculator("some model", "", "", "", (CLOCK, COUNT), lambda _: Answer((), ()), (), ())


@pytest.mark.parametrize(
    ("one", "given", "value"),
    [
        (CLOCK, "1.35 GHz", 1350.0),
        (CLOCK, " 1200MHz ", 1200.0),
        (CLOCK, 700, 700.0),
        (COUNT, "1e2", 100),
        (LIST, "1, 2.5,.5 kW", [1000.0, 2500.0, 500.0]),
        (LIST, "100:300:100, 400", [100.0, 200.0, 300.0, 400.0]),
        (LIST, "0:1:0.1", [pytest.approx(n / 10) for n in range(11)]),
        (LIST, [1, 2], [1.0, 2.0]),
        (Input("kind", "Kind", "choice", choices=("a", "b")), "b", "b"),
        (Input("kind", "Kind", "text", default=""), " ", None),
        (Input("plan", "Plan", "document"), "a = 1\r\n[b]\r\nc = 'x'", {"a": 1, "b": {"c": "x"}}),
        (TABLE, "kernel,power\nsaxpy,100\n", [{"kernel": "saxpy", "power": 100.0, "idle": 3.0, "note": None}]),
        (
            TABLE,
            "\ufeff# a comment\r\nPower (mW);Kernel;idle\r\n\r\n500;'=a';\r\n",
            [{"kernel": "'=a'", "power": 0.5, "idle": 3.0, "note": None}],
        ),
        (
            COUNTERS,
            "kernel\tpower\tAlu Rate\nx\t1\t0.25",
            [{"kernel": "x", "power": 1.0, "idle": 3.0, "note": None, "alu_rate": 0.25}],
        ),
        (TABLE, [{"kernel": "x", "power": 2}], [{"kernel": "x", "power": 2.0, "idle": 3.0, "note": None}]),
    ],
)
def test_values_are_of_their_kind(one, given, value):
    assert value_of(one, given) == value


@pytest.mark.parametrize(
    ("one", "given", "said"),
    [
        (CLOCK, None, "it is missing; needed: Clock, a number above 0, in MHz"),
        (CLOCK, "fast", "'fast' is not a finite number"),
        (CLOCK, "1,5", "write 1.5"),
        (CLOCK, "1e999", "not a finite number"),
        (CLOCK, "nan", "not a finite number"),
        (CLOCK, "\u0661", "not a finite number"),
        (CLOCK, "3 W", "the unit 'W' is not allowed; give it in MHz"),
        (CLOCK, "0", "0 is not a number above 0, in MHz"),
        (CLOCK, True, "'True' is not a number"),
        (CLOCK, {"a": 1}, "is not a number"),
        (COUNT, "2.5", "2.5 is not a whole number from 1 to 200"),
        (COUNT, "201", "201 is not a whole number from 1 to 200"),
        (LIST, "1,2 W,3", "with and without a unit"),
        (LIST, "1:1e9", "in at most 500 steps"),
        (LIST, "3:1", "must go up"),
        (LIST, "0:300,0:300", "more than 500 numbers"),
        (LIST, "1 W:2 W", "has a unit inside"),
        (Input("kind", "Kind", "choice", choices=("a", "b")), "c" * 100, "…' is not one of a, b"),
        (Input("plan", "Plan", "document"), "a = ", "it is not TOML"),
        (Input("plan", "Plan", "document"), "a = " + "[" * 5000, "it is not TOML"),
        (TABLE, "# no head", "the column kernel and power is missing; it has none"),
        (TABLE, "kernel,power\n", "it has no rows"),
        (TABLE, "kernel,powr\n", "line 1: no column named 'powr'; did you mean 'power'?"),
        (TABLE, "kernel,power,power\n", "line 1: there are two columns 'power'"),
        (TABLE, "kernel,power\na,1,2\n", "line 2: it has 3 cells but needs 2"),
        (TABLE, "kernel,power\na,1\nb,x\n", "line 3, power: 'x' is not a finite number"),
        (TABLE, "kernel,power (s)\na,1\n", "line 2, power: the unit 's' is not allowed; give it in W"),
        (TABLE, "kernel,power\na,\n", "line 2, power: it is missing"),
        (TABLE, "kernel,power\n" + "a,1\n" * 10_001, "more than 10000 rows"),
        (TABLE._replace(maximum=1), "kernel,power\na,1\nb,1\n", "more than 1 rows"),
        (TABLE, "kernel,power\na,1\0", "NUL"),
        (TABLE, ",".join("a" * 201), "more than 200 cells"),
        (TABLE, [{"kernel": "x", "power": 1}, "x"], "line 3: 'x' is not an object of columns"),
        (TABLE, 3, "'3' is not a table as CSV"),
    ],
)
def test_what_is_wrong_is_said(one, given, said):
    with pytest.raises(UsageError) as refused:
        value_of(one, given)
    assert said in str(refused.value)


def test_every_problem_is_found_at_once():
    assert set(check(MODEL, {"clock": "x"}).problems) == {"clock", "sms"}
    with pytest.raises(UsageError, match=r"clock: 'x' is not .*; sms: it is missing"):
        checked_values(MODEL, {"clock": "x"})
    with pytest.raises(UsageError, match="no input of 'some model' named 'clok'; did you mean 'clock'"):
        check(MODEL, {"clok": "1"})
