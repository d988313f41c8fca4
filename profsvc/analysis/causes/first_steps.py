"""The first step against each cause, for those who write the kernel or for those who call it."""

import pandas as pd

from profsvc.specs.advice.libraries import first_step_of, library_of


def with_first_steps(causes: pd.DataFrame, kernels: "pd.Series[str]") -> pd.DataFrame:
    """Return rows of `profsvc.analysis.causes.rows.launch_causes` with the column ``first_step``.

    ``kernels`` has the full name of the kernel of each launch, which is its index. Who calls a library's kernel cannot
    change it.
    """
    library = {kernel: library_of(kernel) for kernel in kernels.unique()}
    of_rows = [library[kernel] for kernel in causes["launch_id"].map(kernels)]
    pairs = list(zip(causes["cause"], of_rows, strict=True))
    steps = {pair: first_step_of(*pair) for pair in set(pairs)}
    return causes.assign(first_step=[steps[pair] for pair in pairs])
