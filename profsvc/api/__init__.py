"""A store with the methods of `profsvc.client.Client`, for programs that work with a store or with a service.

`open` gives the same results as frames for both, as a notebook needs them::

    import profsvc
    results = profsvc.open("profsvc.sqlite")  # or "https://profsvc.lab"
    results.run("today").causes
    results.compare("monday", "tuesday").kernels

`connect` gives the methods of the client::

    from profsvc import api
    with api.connect() as target:  # as PROFSVC_URL and PROFSVC_STORE say
        target.submit("ncu_raw.csv", run="nightly")
        target.compare("monday", "tuesday", fail_on="duration=5%")
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
