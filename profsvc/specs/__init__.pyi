from .advice.antipatterns import (
    Pattern as Pattern,
    patterns as patterns,
)
from .advice.categories import (
    Category as Category,
    categories as categories,
)
from .changes import (
    FACT_PARTS as FACT_PARTS,
    ChangeFact as ChangeFact,
    SmallestChange as SmallestChange,
    change_fact as change_fact,
    change_facts as change_facts,
    changes as changes,
    smallest_change as smallest_change,
)
from .power.components import (
    Component as Component,
    components as components,
    instruction_units as instruction_units,
)
from .vocabulary.computed import (
    ComputedNumber as ComputedNumber,
    computed as computed,
)
from .criteria import (
    COST as COST,
    FIGURE as FIGURE,
    FUNCTION as FUNCTION,
    criteria as criteria,
    figures as figures,
    measured_figures as measured_figures,
    quantities as quantities,
)
from .files.formats import format_pages as format_pages
from .hardware import (
    Device as Device,
    device as device,
    devices as devices,
)
from .metrics.breakdown import (
    ShownCounter as ShownCounter,
    breakdown as breakdown,
)
from .metrics.collection import (
    feeds_criteria as feeds_criteria,
    how_to_collect as how_to_collect,
    how_to_measure as how_to_measure,
)
from .metrics.derive import derive_counters as derive_counters
from .metrics.expression import (
    Expression as Expression,
    parse as parse,
)
from .metrics.mapping import metrics as metrics
from .metrics.vocabulary import (
    Counter as Counter,
    Unit as Unit,
    counters as counters,
    labels as labels,
    metric_of as metric_of,
    units as units,
)
from .models.inputs import (
    ORIGINS as ORIGINS,
    Model as Model,
    ModelInput as ModelInput,
    all_models as all_models,
    model_inputs as model_inputs,
    models as models,
)
from .plausibility import (
    PlausibleRange as PlausibleRange,
    range_of as range_of,
    ranges as ranges,
)
from .power.units import (
    PowerUnit as PowerUnit,
    power_units as power_units,
)
from .questions import (
    Question as Question,
    question as question,
    questions as questions,
)
from .published.references import (
    Reference as Reference,
    references as references,
)
from .published.reproduced import (
    Figure as Figure,
    reproduced as reproduced,
)
from .vocabulary.terms import (
    term as term,
    terms as terms,
)
from .models.timing import (
    MemoryParameters as MemoryParameters,
    memory_parameters as memory_parameters,
    memory_table as memory_table,
    timing as timing,
)
from .traces.activities import activity_category as activity_category
from .traces.wall_time import (
    WallTimeCategory as WallTimeCategory,
    wall_time_categories as wall_time_categories,
)
