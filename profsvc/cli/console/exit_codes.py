"""The exit codes of every command. `profsvc.errors` has the code of each kind of error."""

INTERRUPTED = 130
"""As a shell says of what Ctrl-C ended: 128 and the number of the signal."""
EXIT_CODES = {
    0: "Success. Of `upload` also if the service is unreachable or full and a file is queued, which the message says.",
    1: "A limit of `--fail-on` was exceeded. Of `report nightly` also if the report was not delivered.",
    2: "Bad request: wrong arguments, options or SQL.",
    3: "Not found: a name that does not exist, such as a run, a kernel, a file or a topic. Similar names are listed.",
    4: "Not allowed: no token, or a token without the scope.",
    5: "The store, the service or the network failed.",
    6: "A file was refused, or nothing in it can be stored. The message says where and why. Of `characterize`: "
    "no CUDA compiler or no GPU. Of `record`: no GPU or no profiler.",
    7: "Some files were stored, others were refused.",
    INTERRUPTED: "Interrupted by Ctrl-C, or a prompt was left. A file is stored whole or not at all.",
}
