"""How the values of a series scatter about its level.

Modules::

    older_values        values of before a series scattered, or became quieter
    shared_noise        noise of a night that all siblings share
    siblings            what the siblings of a series say of its noise
    unknown_dependence  how laws of dependence count where no siblings say which
"""
