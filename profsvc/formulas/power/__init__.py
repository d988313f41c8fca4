"""Power of a device: components, energy, number of SMs, leakage, placement.

Modules::

    active_sms       power against the number of active SMs: fits and predictions
    component_power  power of components by access rates
    core_count       best number of SMs, and its savings
    energy           energy, products with delay, efficiency
    energy_split     work split between CPU and GPU
    leakage          static power against voltage and temperature
    max_power        MaxPower of the units from own runs
    placement        placement of active cores
    sm_laws          four laws of that power
    unit_choice      law and units of a power model, chosen by kernels left out
"""
