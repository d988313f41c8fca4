"""model_inputs.csv and models.toml agree with the formulas, the glossary and themselves; a wrong row is named."""

import inspect

import pytest

from profsvc.analysis.models.inputs import formula_arguments, input_names
from profsvc.errors import DomainError
from profsvc.formulas.benefit import Machine, benefit
from profsvc.formulas.mwp_cwp import exec_cycles
from profsvc.formulas.performance.occupancy import occupancy
from profsvc.formulas.throughput import throughput
from profsvc.specs import model_inputs, models
from profsvc.specs.metrics.expression import parse
from profsvc.specs.models.inputs import MODELS, ORIGINS, origin, read_model_inputs, read_models

HEAD = "input,unit,expression,models,meaning,source\n"


def required(function: object) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.default is inspect.Parameter.empty}


@pytest.mark.parametrize(
    ("model", "formula", "others"),
    [
        ("mwp_cwp", exec_cycles, set()),
        ("benefit", benefit, {"machine"}),
        ("throughput", throughput, set()),
        ("occupancy", occupancy, {"limits"}),
    ],
)
def test_the_inputs_of_a_model_are_the_arguments_of_its_formula(model, formula, others) -> None:
    given = set(formula_arguments(model, dict.fromkeys(model_inputs(), 1.0)))
    assert required(formula) - others <= given
    assert given <= set(inspect.signature(formula).parameters)


def test_the_inputs_of_a_machine_are_its_fields() -> None:
    assert set(formula_arguments("machine", dict.fromkeys(model_inputs(), 1.0))) == set(Machine._fields)


def test_every_model_has_inputs_and_every_input_a_use() -> None:
    assert all(input_names(model) for model in MODELS)
    used = {name for one in model_inputs().values() for name in one.expression.names}
    assert [name for name, one in model_inputs().items() if not one.models and name not in used] == [
        "shared_mem_config_bytes",  # of the limits of an SM
        *("exported_limit_blocks", "exported_limit_warps", "exported_limit_registers", "exported_limit_shared"),
        *("inst_latency", "local_insts", "schedulers", "dram_sustained"),  # of what-if
    ]
    assert set(MODELS) - {"machine", "peak_time"} == set(models()) - {"amdahl", "agreement", "antiparallel"}


def test_an_input_says_where_each_way_to_it_comes_from() -> None:
    found = {name: one.origins for name, one in model_inputs().items()}
    assert found["threads_per_block"] == ("measured", "derived")
    assert found["bandwidth"] == ("measured", "device")
    assert found["dram_bandwidth"] == ("characterized", "derived")
    assert found["ilp"] == ("assumed",)
    assert {way for ways in found.values() for way in ways} == set(ORIGINS)
    assert origin(parse("device.sms * 2").alternatives[0]) == "derived"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,1,@sm_count,,x,\na,1,@sm_count,,x,", "line 3: input must be a new name but is 'a'"),
        ("a,,@sm_count,,x,", "line 2: 'a' needs a unit"),
        ("a,1,@sm_count,cpi,x,", "line 2: models must be among"),
        ("a,1,@sm_count +,,x,", "line 2: cannot read expression '@sm_count \\+' at character 11"),
        ("a,1,@sms,,x,", r"line 2: 'a' uses \['@sms'\], which are not counters"),
        ("a,1,b,,x,\nb,1,@sm_count,,x,", r"line 2: 'a' uses \['b'\]"),
        ("a,1,device.cores,,x,", r"line 2: 'a' uses \['device.cores'\]"),
        ("a,1,@sm_count | 4,,x,", "line 2: 'a' may be assumed and needs a source"),
    ],
)
def test_a_wrong_input_is_named(row: str, message: str) -> None:
    with pytest.raises(DomainError, match=f"model_inputs.csv {message}"):
        read_model_inputs(HEAD + row)


ENTRY = """[a]
title = "t"
question = "q?"
section = "2"
needs = "n"
command = "profsvc runs"
view = "v1_models"
page = "/"
functions = ["numerics.flags.flag_names"]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY.replace('"n"', '""'), r"\[a\]: \['needs'\] missing or empty"),
        (ENTRY + 'hnt = "h"', r"\[a\]: \['hnt'\] not known"),
        (ENTRY + 'reference = "Nobody1999"', "there is no reference 'Nobody1999'"),
        (ENTRY + 'hint = "h"', "a formula needs a hint"),
    ],
)
def test_a_wrong_model_is_named(text: str, message: str) -> None:
    assert read_models(ENTRY)["a"].source == "section 2"
    with pytest.raises(DomainError, match=f"models.toml .*{message}"):
        read_models(text)
