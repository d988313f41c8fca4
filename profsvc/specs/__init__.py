"""The domain as data: loads the tables under ``profsvc/data`` into frozen dataclasses.

===============  ==================================================================
``files``        opens the tables; says which file and row is wrong
``vocabulary``   counters.csv, labels.csv, sections.csv, units.csv
``expression``   the little language of metrics.csv
``mapping``      metrics.csv: a tool's metrics -> our counters
``derive``       evaluates metrics.csv over the launches of a file
``breakdown``    breakdown.csv: what an opened launch shows of its counters
``categories``   categories.csv: the ten categories of the throughput model, with advice
``collecting``   metrics.csv and labels.csv -> the option of a tool that collects a counter
``hardware``     devices.toml
``computed``     columns.toml: how columns of the views are computed
``components``   components.csv, instruction_units.csv: the units of a device that draw power
``power_units``  power_units.csv: the units that are fitted to the power of a device
``literature``   references.toml
``plausible``    ranges.csv: what each quantity can be
``patterns``     patterns.csv: what keeps a parallel program from its least time
``reproduced``   reproduced.csv: published figures that the formulas were held against
``terms``        terms.csv: what words in rows of the views mean
``guidance``     criteria.toml: the nine criteria, the units and their hints
``questions``    queries.toml: example queries over the views of the store
``timing``       timing.toml: parameters, instruction costs and benchmarks of the timing model
``model_inputs`` models.csv, model_inputs.csv: the performance models and what they take of a launch
``changes``      changes.toml: the smallest change of a quantity that matters
===============  ==================================================================
"""

from profsvc.specs.breakdown import Shown, breakdown
from profsvc.specs.categories import Category, categories
from profsvc.specs.changes import SmallestChange, changes, smallest_change
from profsvc.specs.collecting import how_to_collect, how_to_measure
from profsvc.specs.components import Component, components, instruction_units
from profsvc.specs.computed import Computed, computed
from profsvc.specs.derive import derive_counters
from profsvc.specs.expression import Expression, parse
from profsvc.specs.guidance import criteria, figures
from profsvc.specs.hardware import Device, device, devices
from profsvc.specs.literature import Reference, references
from profsvc.specs.mapping import metrics
from profsvc.specs.model_inputs import ORIGINS, Model, ModelInput, model_inputs, models
from profsvc.specs.patterns import Pattern, patterns
from profsvc.specs.plausible import Plausible, range_of, ranges
from profsvc.specs.power_units import PowerUnit, power_units
from profsvc.specs.questions import Question, question, questions
from profsvc.specs.reproduced import Figure, reproduced
from profsvc.specs.terms import term, terms
from profsvc.specs.timing import MemoryParameters, memory_parameters, memory_table, timing
from profsvc.specs.vocabulary import Counter, Unit, counters, labels, metric_of, units

__all__ = [
    "ORIGINS",
    "Category",
    "Component",
    "Computed",
    "Counter",
    "Device",
    "Expression",
    "Figure",
    "MemoryParameters",
    "Model",
    "ModelInput",
    "Pattern",
    "Plausible",
    "PowerUnit",
    "Question",
    "Reference",
    "Shown",
    "SmallestChange",
    "Unit",
    "breakdown",
    "categories",
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
    "memory_parameters",
    "memory_table",
    "metric_of",
    "metrics",
    "model_inputs",
    "models",
    "parse",
    "patterns",
    "power_units",
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
]
