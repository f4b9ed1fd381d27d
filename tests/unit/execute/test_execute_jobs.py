"""Jobs by their numbers: a step where the number says which, and the kernel alone where it does not."""

from __future__ import annotations

import pytest

from bytewright.execute.jobs import described_job, step_of_job
from support import two_devices

# One kernel in both arms: the first job of a run is of either step.
EITHER = """
module m
input %x : tensor<8xi8>
input %go : tensor<1xbool>
output %y : tensor<8xi8>
kernel m_next(x : buffer<8xi8> r, y : buffer<8xi8> w) on core1 {
  for i : i32 in 0 .. 8 { y[i] = x[7 - i] }
}
kernel m_move(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu {
  for i : i32 in 0 .. 8 { y[i] = x[i] }
}
entry main(x : buffer<8xi8> r, go : buffer<1xbool> r, y : buffer<8xi8> w) on cpu {
  allocate s : buffer<8xi8>
  allocate t : buffer<8xi8>
  allocate u : buffer<8xi8>
  call_extern m_move(&x, &s)
  call_extern m_move(&x, &t)
  if go[0] {
    call_extern m_next(&s, &u)
  } else {
    call_extern m_next(&t, &u)
  }
  call_extern m_move(&u, &y)
}
"""


@pytest.mark.parametrize(
    ("number", "kernel", "job"),
    [
        (0, None, "what it is lent"),
        (1, None, "job 1 (kernel 'pair_filter', step 2)"),
        (1, 0, "job 1 (kernel 'pair_filter', step 2)"),
        (2, 1, "job 2 (kernel 'pair_narrow', step 4)"),
        (2, 0, "job 2 (kernel 'pair_filter')"),
        (3, None, "job 3"),
    ],
)
def test_a_job_is_a_step_of_its_device(number: int, kernel: int | None, job: str) -> None:
    plan = two_devices.compiled().plan
    assert described_job(plan, plan.devices["core1"], number, kernel) == job


def test_a_job_of_a_program_that_branches_has_no_step() -> None:
    plan = two_devices.compiled(EITHER).plan
    assert [step.kernel for step in plan.steps if step.device == "core1"] == ["m_next", "m_next"]
    assert described_job(plan, plan.devices["core1"], 1, 0) == "job 1 (kernel 'm_next')"
    assert step_of_job(plan, plan.devices["core1"], 1) is None
