"""States that devices share which reach different memories: a target, and programs for it."""

from __future__ import annotations

# near: cpu alone; left: cpu and core1; right: cpu and core2.
APART = """
name = "apart"
default-device = "cpu"
[memory.near]
size = "64KiB"
[memory.left]
size = "64KiB"
[memory.right]
size = "64KiB"
[device.cpu]
isa = "host"
reach = ["near", "left", "right"]
stack = "near"
max-stack-size = "8KiB"
[device.core1]
isa = "host"
reach = ["left"]
stack = "left"
max-stack-size = "4KiB"
[device.core2]
isa = "host"
reach = ["right"]
stack = "right"
max-stack-size = "4KiB"
[[workspace]]
name = "near"
memory = "near"
size = "16KiB"
[[workspace]]
name = "left"
memory = "left"
size = "16KiB"
[[workspace]]
name = "right"
memory = "right"
size = "16KiB"
"""
KEEP = """
kernel keep_on_{device}(x : buffer<8xi32> r activation, s : buffer<8xi32> rw activation) on {device} {{
  for i : i32 in 0 .. 8 {{
    s[i] = min(max(s[i], x[i]), 9999) + {more}
  }}
}}
"""


_MORE = {"cpu": 0, "core1": 1, "core2": 2}


def keeping(*uses: tuple[str, str]) -> str:
    """Kernels of devices that keep the greatest values of an input in states; (device, state). The last is the output.

    Each adds the number of its device, so that it is seen whose work was lost.
    """
    states, devices = dict.fromkeys(state for _, state in uses), dict.fromkeys(device for device, _ in uses)
    lines = ["module greatest", "input %x : tensor<8xi32>", "output %y : tensor<8xi32>"]
    lines += [f"state %{state} : tensor<8xi32>" for state in states]
    lines += [KEEP.format(device=device, more=_MORE[device]) for device in devices]
    lines += ["kernel end(x : buffer<8xi32> r activation, y : buffer<8xi32> w activation) on cpu {"]
    lines += ["  for i : i32 in 0 .. 8 { y[i] = x[i] }", "}"]
    lines += ["entry main(x : buffer<8xi32> r activation, y : buffer<8xi32> w activation) on cpu {"]
    lines += [f'  allocate {state} : buffer<8xi32> {{io="state"}}' for state in states]
    for device in dict.fromkeys(d for d in devices if d != "cpu"):
        lines += [f"  allocate x_{device} : buffer<8xi32>", f"  call_extern end(&x, &x_{device})"]
    for device, state in uses:
        given = "x" if device == "cpu" else f"x_{device}"
        lines += [f"  call_extern keep_on_{device}(&{given}, &{state})"]
    return "\n".join([*lines, f"  call_extern end(&{uses[-1][1]}, &y)", "}"]) + "\n"
