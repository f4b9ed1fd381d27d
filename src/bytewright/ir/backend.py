"""The pair of C functions that a run requests memory with at run time: in the bundle, or the application's own."""


def backend_functions(model: str) -> tuple[str, str]:
    """The names of the one that requests and the one that releases."""
    return f"{model}_backend_alloc_workspace", f"{model}_backend_free_workspace"
