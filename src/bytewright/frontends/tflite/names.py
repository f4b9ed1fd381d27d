"""C identifiers from the names of the tensors at the model's border."""

from bytewright.c_names import c_name
from bytewright.diagnostics import compile_error


def port_names(tensors: tuple[tuple[int, str], ...], role: str) -> tuple[str, ...]:
    """Members of the generated structure of inputs or outputs.

    Args:
        tensors: Index and name of each; a tensor that is stated again gets a number.
        role: For the error, and for names without a usable character.

    Raises:
        CompileError: BW109, two tensors become the same identifier.
    """
    owners: dict[str, str] = {}
    times_stated: dict[int, int] = {}
    for position, (index, tensor_name) in enumerate(tensors):
        stem = c_name(tensor_name.lower(), f"{role}_{position}")
        name, number = stem, times_stated.get(index, 0)
        while name in owners and number:
            name, number = f"{stem}_{number}", number + 1
        times_stated[index] = max(number, 1)
        if name in owners:
            raise compile_error(
                "BW109",
                f"the {role}s '{owners[name]}' and '{tensor_name}' both become '{name}' in C",
                help=f"rename one of the two {role} tensors in the model",
            )
        owners[name] = tensor_name
    return tuple(owners)
