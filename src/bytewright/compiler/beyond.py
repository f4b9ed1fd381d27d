"""The plan that a model would have without limits, beside the limits that there are: to show what is missing."""

from dataclasses import replace
from pathlib import Path

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.compiler.pipeline import plan_model
from bytewright.compiler.remedy.mend_options import require_hardware
from bytewright.options import NOTHING_ASKED, Options
from bytewright.record.plan import Plan
from bytewright.target.model import Target
from bytewright.target.options import Overrides
from bytewright.target.variants import without_limits


def plan_beyond(model: Path, target: Target, options: Options = NOTHING_ASKED) -> Plan:
    """The plan without limits, in which pools and stacks are given those of the target, as the options change it.

    Raises:
        CompileError: The model is wrong, or too large for any memory.
    """
    target = require_hardware(target, options.overrides)
    options = replace(options, overrides=Overrides())  # sizes among them would be limits again
    plan = plan_model(model, without_limits(target), options).plan
    pools = {
        pool.name: replace(pool, capacity_bytes=target.capacity_bytes(known))
        if (known := target.find_pool(pool.name)) is not None
        else pool
        for pool in plan.pools.values()
    }
    stacks = {
        name: replace(stack, limit_bytes=context.available_stack_bytes)
        if (context := target.find_context(name)) is not None
        else stack
        for name, stack in plan.stack.items()
    }
    return replace(plan, hardware=target, pools=FrozenMapping(pools), stack=FrozenMapping(stacks))
