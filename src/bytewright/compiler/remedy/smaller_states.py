"""What helps where states have room in no memory: the options with which a model keeps less, if it is planned then."""

from collections.abc import Callable
from dataclasses import replace

from bytewright.compiler.remedy.remedy import Remedy
from bytewright.compiler.trial import Conditions
from bytewright.diagnostics import CompileError
from bytewright.options import Optimize, Options
from bytewright.target.model import Target


def with_smaller_states(
    error: CompileError, target: Target, options: Options, attempt: Callable[[Options], object]
) -> CompileError:
    """The refusal, with what helps if states are all that is too large.

    Args:
        error: A model is not lowered; BW301 says that a state has no room.
        target: What it is compiled for.
        options: What was asked for.
        attempt: Plans the model with other options, or raises a `CompileError`.
    """
    if options.optimize is Optimize.SIZE or {each.code for each in error.diagnostics} != {"BW301"}:
        return error
    remedy = Remedy(optimize=Optimize.SIZE)
    try:
        attempt(remedy.apply(Conditions(target, options)).options)
    except CompileError:
        return error
    change = remedy.change(target)
    return CompileError(replace(each, help=change.text, changes=(change,)) for each in error.diagnostics)
