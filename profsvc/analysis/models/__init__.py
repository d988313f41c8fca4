"""Performance models over launches and kernels.

``inputs`` collects what the models take and where it comes from; ``timing`` and ``limits`` compute their answers;
``agreement`` compares models of one question; ``rows`` turns answers and missing inputs into result rows;
``evaluation`` runs all models; ``what_if`` and ``loaded_launch`` predict other machines and launch shapes.
"""
