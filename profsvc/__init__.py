"""profsvc: GPU profiles and power logs in; bottlenecks, potential speedups and what changed out.

The floors, highest first; imports point down only and neighbours on a floor do not know each other::

    8  cli                                                   the command line; it starts the service too
    7  web                                                   the service
    6  views | scheduler | scale | client                    questions, timer, crowd, wire
    5  pipeline                                              the joiner
    4  formats | store | reports | microbench | settings     the edges: bytes, SQL, paper, GPU, environment
    3  analysis                                              pure, tables
    2  tables | specs                                        the domain as data
    1  formulas                                              pure, numbers
    0  errors
"""
