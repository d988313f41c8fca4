"""The domain as data: loads the tables under ``profsvc/data`` into frozen dataclasses.

There is one module per table; ``table_files`` opens them and names the file and row of an error. ``metrics`` holds the
counters, the labels and units of tools, and the expressions that derive counters from a tool's metrics.
"""

from profsvc.specs.antipatterns import Pattern, patterns
from profsvc.specs.categories import Category, categories
from profsvc.specs.changes import (
    FACT_PARTS,
    ChangeFact,
    SmallestChange,
    change_fact,
    change_facts,
    changes,
    smallest_change,
)
from profsvc.specs.components import Component, components, instruction_units
from profsvc.specs.computed import ComputedNumber, computed
from profsvc.specs.criteria import COST, FIGURE, FUNCTION, criteria, figures, measured_figures, quantities
from profsvc.specs.hardware import Device, device, devices
from profsvc.specs.metrics.breakdown import ShownCounter, breakdown
from profsvc.specs.metrics.collection import how_to_collect, how_to_measure
from profsvc.specs.metrics.derive import derive_counters
from profsvc.specs.metrics.expression import Expression, parse
from profsvc.specs.metrics.mapping import metrics
from profsvc.specs.metrics.vocabulary import Counter, Unit, counters, labels, metric_of, units
from profsvc.specs.model_inputs import ORIGINS, Model, ModelInput, all_models, model_inputs, models
from profsvc.specs.plausibility import PlausibleRange, range_of, ranges
from profsvc.specs.power_units import PowerUnit, power_units
from profsvc.specs.questions import Question, question, questions
from profsvc.specs.references import Reference, references
from profsvc.specs.reproduced import Figure, reproduced
from profsvc.specs.terms import term, terms
from profsvc.specs.timing import MemoryParameters, memory_parameters, memory_table, timing
from profsvc.specs.traces.activities import activity_category
from profsvc.specs.traces.wall_time import WallTimeCategory, wall_time_categories

__all__ = [
    "COST",
    "FACT_PARTS",
    "FIGURE",
    "FUNCTION",
    "ORIGINS",
    "Category",
    "ChangeFact",
    "Component",
    "ComputedNumber",
    "Counter",
    "Device",
    "Expression",
    "Figure",
    "MemoryParameters",
    "Model",
    "ModelInput",
    "Pattern",
    "PlausibleRange",
    "PowerUnit",
    "Question",
    "Reference",
    "ShownCounter",
    "SmallestChange",
    "Unit",
    "WallTimeCategory",
    "activity_category",
    "all_models",
    "breakdown",
    "categories",
    "change_fact",
    "change_facts",
    "changes",
    "components",
    "computed",
    "counters",
    "criteria",
    "derive_counters",
    "device",
    "devices",
    "figures",
    "how_to_collect",
    "how_to_measure",
    "instruction_units",
    "labels",
    "measured_figures",
    "memory_parameters",
    "memory_table",
    "metric_of",
    "metrics",
    "model_inputs",
    "models",
    "parse",
    "patterns",
    "power_units",
    "quantities",
    "question",
    "questions",
    "range_of",
    "ranges",
    "references",
    "reproduced",
    "smallest_change",
    "term",
    "terms",
    "timing",
    "units",
    "wall_time_categories",
]
