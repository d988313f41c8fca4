"""The first step against each cause, for those who write the kernel or for those who call it."""

import pandas as pd

from profsvc.analysis.causes.alternatives import condition_of
from profsvc.specs.advice.causes import ALTERNATIVE
from profsvc.specs.advice.libraries import first_step_of, library_of


def with_first_steps(causes: pd.DataFrame, kernels: "pd.Series[str]") -> pd.DataFrame:
    """Return rows of `profsvc.analysis.causes.rows.launch_causes` with the column ``first_step``.

    ``kernels`` has the full name of the kernel of each launch, which is its index. Who calls a library's kernel cannot
    change it. The step of an alternative begins with the condition on which it holds.
    """
    library = {kernel: library_of(kernel) for kernel in kernels.unique()}
    of_rows = [library[kernel] for kernel in causes["launch_id"].map(kernels)]
    pairs = list(zip(causes["cause"], of_rows, strict=True))
    steps = {pair: first_step_of(*pair) for pair in set(pairs)}
    first = causes.loc[causes["rank"] == 1].set_index("launch_id")["cause"]
    answers = causes["launch_id"].map(first).where(causes["kind"] == ALTERNATIVE)
    told = {
        (answer, pair): _on_condition(condition_of(answer, pair[0]), steps[pair])
        for answer, pair in set(zip(answers, pairs, strict=True))
        if isinstance(answer, str)
    }
    return causes.assign(
        first_step=[told.get((answer, pair), steps[pair]) for answer, pair in zip(answers, pairs, strict=True)]
    )


def _on_condition(condition: str, step: str) -> str:
    """Return a step with the condition on which it helps.

    >>> _on_condition("if DRAM is slow", "Load less.")
    'If DRAM is slow: load less.'
    """
    return f"{condition[:1].upper()}{condition[1:]}: {step[:1].lower()}{step[1:]}"
