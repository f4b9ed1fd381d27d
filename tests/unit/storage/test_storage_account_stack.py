"""The planned stack: arrays along the worst call path, and the refusal that names it."""

from __future__ import annotations

from bytewright.ir.analyses.stack import stack_refusals, stack_uses
from bytewright.ir.builder import BodyBuilder, region
from bytewright.ir.expr import Buffer, Var
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, Allocate, BufferParameter, For, If, PrimFunc, Seq
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.hand_built import WHERE, module_of, reverse_kernel, tensor

HOST = load_target("host")
ALLOWANCE = HOST.default_device.stack_allowance_per_call_bytes


def array(name: str, size_bytes: int, scope: Scope = LOCAL) -> Allocate:
    return Allocate(Buffer(name, (size_bytes,), DType.I8, 1), Storage(scope))


def with_kernel(*statements: Allocate | Seq | If | For) -> Module:
    """An entry that calls one kernel with these statements."""
    parameters = (
        BufferParameter(Buffer("source", (8,), DType.I8), Access.READ, scope=GLOBAL),
        BufferParameter(Buffer("result", (8,), DType.I8), Access.WRITE, scope=GLOBAL),
    )
    kernel = PrimFunc("k", parameters, Seq(tuple(statements)), where=WHERE)
    return entry_calling(kernel)


def entry_calling(*kernels: PrimFunc, called: tuple[str, ...] = ()) -> Module:
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", 8), tensor("y", 8)
    for name in called or tuple(kernel.name for kernel in kernels):
        body.call(name, region(first), region(last), where=WHERE)
    return module_of("m", kernels, body.finish(), first, last)


def planned_bytes(*statements: Allocate | Seq | If | For) -> int:
    return stack_uses(with_kernel(*statements), HOST)[0].planned_bytes


def test_arrays_of_a_sequence_add_up() -> None:
    assert planned_bytes(array("a", 10), array("b", 20, STACK)) == 30


def test_separate_blocks_take_turns() -> None:
    assert planned_bytes(array("a", 10), Seq((array("b", 20),)), Seq((array("c", 30),))) == 40


def test_branches_take_turns_and_loops_count_once() -> None:
    condition = Var("flag", DType.I32) < 1
    branches = If(condition, Seq((array("a", 10),)), Seq((array("b", 20),)))
    loop = For(Var("i", DType.I32), Var("n", DType.I32), Var("n", DType.I32), Seq((array("c", 15), branches)))
    assert planned_bytes(branches) == 20
    assert planned_bytes(loop) == 35


def test_scalars_and_workspace_do_not_count() -> None:
    scalar = Allocate(Buffer("s", (), DType.I64), Storage(LOCAL))
    assert planned_bytes(scalar, array("a", 10, WORKSPACE)) == 0


def test_element_types_count_their_size() -> None:
    assert planned_bytes(Allocate(Buffer("a", (3, 5), DType.I32), Storage(LOCAL))) == 60


def test_the_worst_path_is_named_with_an_allowance_for_each_level() -> None:
    kernels = [reverse_kernel(name, size, STACK) for name, size in (("a", 10), ("b", 30), ("c", 20))]
    use = stack_uses(entry_calling(*kernels), HOST)[0]
    assert use.path == ("main", "b")
    assert (use.planned_bytes, use.size_bytes) == (30, 30 + 2 * ALLOWANCE)
    assert (use.context, use.limit_bytes, use.excess_bytes) == ("cpu", None, 0)


def test_kernels_that_call_kernels_are_followed() -> None:
    inner = reverse_kernel("inner", 40, STACK)
    source, result = (Buffer(name, (40,), DType.I8) for name in ("source", "result"))
    body = BodyBuilder(("source", "result"))
    body.allocate(Buffer("own", (7,), DType.I8), Storage(STACK))
    body.call("inner", region(source), region(result), where=WHERE)
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    outer = PrimFunc("outer", parameters, body.finish(), where=WHERE)
    use = stack_uses(entry_calling(inner, outer, called=("outer",)), HOST)[0]
    assert use.path == ("main", "outer", "inner")
    assert (use.planned_bytes, use.size_bytes) == (47, 47 + 3 * ALLOWANCE)


def limited(max_stack_bytes: int) -> Target:
    return apply_overrides(load_target("mps3-an547"), Overrides(max_stack_size=max_stack_bytes))


def test_the_limit_is_kept_to_the_byte_and_the_reserve_is_subtracted() -> None:
    module = with_kernel(array("a", 100))
    device = load_target("mps3-an547").default_device
    need = 100 + 2 * device.stack_allowance_per_call_bytes + device.contexts[0].stack_reserve_bytes
    use = stack_uses(module, limited(need))[0]
    assert use.size_bytes == use.limit_bytes == need - device.contexts[0].stack_reserve_bytes
    tight = limited(need - 1)
    (diagnostic,) = stack_refusals(stack_uses(module, tight), module, tight)
    assert diagnostic.code == "BW302"
    assert (
        f"needs {use.size_bytes} B; its limit is {need - 1} B, of which 1024 B are its reserve: 1 B"
        in diagnostic.message
    )
    assert "main 0 B" in diagnostic.notes[0]
    assert "k 100 B" in diagnostic.notes[0]
