"""Performance of one launch: roofline, occupancy, speedup, latency, time bounds, work and depth.

Modules::

    avoidable_work    conversions, expanded functions, sectors that hold one value
    characterization  characterization functions of a device: sweeps reduced to knots
    latency           latency hiding, exposed latency, lanes at work
    loaded_latency    time from latency and rate: Little's law with a queue
    lost_time         idle, issue and stall time, what waits consist of, limits of a saving
    memory_accesses   bank conflicts, transactions, load of memory partitions
    memory_balance    balance of machine and algorithm, transfers, near field
    mended_range      range of what mended kernels achieve of their potential
    occupancy         resident blocks and warps, limiting resource, waves
    operations        names of units and of operations with a cost
    peak_estimates    peaks by instruction mix, speedup of the application
    roofline          roofline, effective bandwidth, chains of speedups
    speedup           potential speedups of mechanism, kernel and application
    time_bound        least time of two rates, and antipatterns
    time_shares       shares of the time by unit
    useful_work       joint bound of the useful work
    wall_time         wall time of a device: every instant in one category
    work_depth        work and depth of an algorithm
"""
