"""Pins to an order of pools and to an offset, and what is said where a pin is wrong."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command_line
from bytewright.diagnostics import CompileError
from bytewright.options import Pin, parse_pin_option
from bytewright.record.plan import Plan
from bytewright.target.options import OptionSyntaxError
from support.digits_bundle import DIGITS

POOLS = ["dtcm=64KiB", "isram=64KiB", "far=64KiB@ddr"]


def planned(*pins: str, workspace: list[str] | None = None) -> Plan:
    workspace = workspace or POOLS
    return bytewright.compile(DIGITS, target="mps3-an547", workspace=workspace, pins=pins, rows="off").plan


def refused(*pins: str, workspace: list[str] | None = None) -> CompileError:
    with pytest.raises(CompileError) as caught:
        planned(*pins, workspace=workspace)
    return caught.value


def help_of(*pins: str) -> str | None:
    (diagnostic,) = refused(*pins).diagnostics
    assert diagnostic.code == "BW204"
    return diagnostic.help


@pytest.mark.parametrize(
    ("text", "pin"),
    [
        ("a*=dtcm", Pin("a*", "dtcm")),
        ("a=b=dtcm", Pin("a=b", "dtcm")),
        ("a+1=dtcm", Pin("a+1", "dtcm")),
        ("a,b=dtcm", Pin("a,b", "dtcm")),
        ("a=dtcm,isram", Pin("a", "dtcm", ("isram",))),
        ("a=x,y,z", Pin("a", "x", ("y", "z"))),
        ("a=dtcm+4096", Pin("a", "dtcm", offset=4096)),
        ("a=dtcm+4KiB", Pin("a", "dtcm", offset=4096)),
        ("a=dtcm+0", Pin("a", "dtcm", offset=0)),
    ],
)
def test_the_forms_of_a_pin(text: str, pin: Pin) -> None:
    assert parse_pin_option(text) == pin
    assert parse_pin_option(str(pin)) == pin


@pytest.mark.parametrize(
    "text",
    ["a=", "=x", "a=x,", "a=,x", "a=x,x", "a=x+", "a=x+-1", "a=x+y", "a=x+1.5", "a=x,y+4", "a=x+4+4", "a=+4"],
)
def test_malformed_pins_are_usage_errors(text: str) -> None:
    with pytest.raises(OptionSyntaxError):
        parse_pin_option(text)
    arguments = ["compile", str(DIGITS), "-o", "never", "--pin", text]
    assert CliRunner().invoke(command_line, arguments).exit_code == 2


def test_an_order_of_pools_is_kept() -> None:
    buffer = planned("conv2d_0/out=isram,dtcm").buffers["conv2d_0/out"]
    assert buffer.place.name == "isram"
    assert buffer.candidates == ("isram", "dtcm")
    assert "--pin 'conv2d_0/out=isram,dtcm'" in buffer.reason
    small = ["dtcm=64KiB", "isram=256", "far=64KiB@ddr"]
    assert planned("conv2d_0/out=isram,far", workspace=small).buffers["conv2d_0/out"].place.name == "far"
    error = refused("conv2d_0/out=isram,tiny", workspace=["dtcm=64KiB", "isram=256", "tiny=512@ddr"])
    assert error.diagnostics[0].code == "BW301"


def test_orders_join_by_intersection() -> None:
    plan = planned("conv2d_0/*=dtcm,isram", "conv2d_0/out=isram,far")
    assert plan.buffers["conv2d_0/out"].place.name == "isram"
    assert (
        planned("conv2d_0/out=dtcm,isram", "conv2d_0/out=isram").buffers["conv2d_0/out"].place.name == "isram"
    )
    assert (
        planned("conv2d_0/out=isram", "conv2d_0/out=far,isram").buffers["conv2d_0/out"].place.name == "isram"
    )
    for pins in (
        ("conv2d_0/out=dtcm,isram", "conv2d_0/out=far"),
        ("conv2d_0/out=far", "conv2d_0/out=isram,dtcm"),
    ):
        (diagnostic,) = refused(*pins).diagnostics
        assert diagnostic.code == "BW204"
        assert all(pin in diagnostic.message for pin in pins)


def test_constants_have_orders_and_offsets_too() -> None:
    model = bytewright.compile(
        DIGITS,
        target="mps3-an547",
        parameters=["flash", "fast=64KiB@isram"],
        pins=["conv2d_4/weights=fast,flash", "conv2d_2/weights=flash+64KiB"],
    )
    assert model.plan.buffers["conv2d_4/weights"].place.name == "fast"
    place = model.plan.buffers["conv2d_2/weights"].place
    assert (place.name, place.offset) == ("flash", 65536)


@pytest.mark.parametrize("offset", [0, 4096, 60000])
def test_an_offset_is_kept(offset: int) -> None:
    plan = planned(f"conv2d_0/out=dtcm+{offset}")
    place = plan.buffers["conv2d_0/out"].place
    assert (place.name, place.offset) == ("dtcm", offset)
    assert plan.pools["dtcm"].used_bytes >= offset + 1024


@pytest.mark.slow
def test_an_offset_is_refused_where_it_cannot_be() -> None:
    assert help_of("conv2d_0/out=dtcm+4097") == "--pin 'conv2d_0/out=dtcm+4096'"
    error = refused("conv2d_0/out=dtcm+64KiB")
    assert error.diagnostics[0].code == "BW301"
    both = refused("conv2d_0/out=dtcm+0", "conv2d_0/out=dtcm+64")
    assert "is at offset 0 already" in str(both)
    overlapping = refused("conv2d_0/out=dtcm+0", "depthwise_conv2d_1/out=dtcm+64")
    assert overlapping.diagnostics[0].code == "BW204"
    assert "pins to offsets contradict each other" in str(overlapping)


@pytest.mark.slow
def test_advice_keeps_to_what_was_meant() -> None:
    assert help_of("conv2d_0/out=DTCM") == "--pin 'conv2d_0/out=dtcm'"
    assert help_of("conv2d_0/out=dctm,isram") == "--pin 'conv2d_0/out=dtcm,isram'"
    assert help_of("CONV2D_0/Out=dtcm") == "--pin 'conv2d_0/out=dtcm'"
    assert help_of("Conv2D_*/out=dtcm+64") == "--pin 'conv2d_*/out=dtcm+64'"
    assert help_of("conv2d_0/oot=dtcm") == "--pin 'conv2d_0/out=dtcm'"
    of_weights = "--parameters hot=1KiB@dtcm --parameters flash --pin 'conv2d_0/weights=hot'"
    assert help_of("conv2d_0/weights=dtcm") == of_weights  # the same weights, in the same memory
    assert help_of("conv2d_0/weihgts=dtcm") == "leave out --pin conv2d_0/weihgts=dtcm"  # no tensor
    assert (
        help_of("conv2d_9*=dtcm") == "leave out --pin 'conv2d_9*=dtcm'"
    )  # a pattern is not mended into one name
    assert help_of("conv2d_0/out=flash") == "--pin 'conv2d_0/out=dtcm'"
    assert "moon" not in (help_of("conv2d_0/out=moon") or "").partition("add")[2]
    assert "no buffer may be in both" in str(refused("conv2d_0/out=dtcm,flash"))


@pytest.mark.parametrize(
    ("option", "text", "advice"),
    [
        ("workspace", "DTCM", "--workspace dtcm"),
        ("workspace", "Dtcm=4KiB", "--workspace dtcm=4KiB"),
        ("parameters", "FLASH", "--parameters flash"),
        ("workspace", "fast@ISRAM", "--workspace fast@isram"),
        ("workspace", "flahs", "--workspace flahs@dtcm"),  # a workspace is not in flash
        ("resize", "DTCM=4KiB", "--resize dtcm=4KiB"),
        ("provider", "ISRAM=generated", "--provider isram=generated"),
    ],
)
def test_names_are_compared_without_case(option: str, text: str, advice: str) -> None:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, target="mps3-an547", **{option: text})
    assert caught.value.diagnostics[0].help == advice


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compile", "m", "--workspaces", "x"), "--workspace"),
        (("compile", "m", "--WORKSPACE", "x"), "--workspace"),
        (("compile", "m", "--resise", "x"), "--resize"),
        (("compile", "m", "--pim", "x"), "--pin"),
        (("compile", "m", "--outside", "x"), None),
        (("compile", "m", "--name-only"), None),
        (("compile", "m", "--max", "4"), None),
        (("run", "m", "--parallel"), None),
        (("--debgu", "ops"), "--debug"),
        (("--debian", "ops"), None),
    ],
)
def test_an_unknown_option_suggests_one_that_was_meant(arguments: tuple[str, ...], said: str | None) -> None:
    result = CliRunner().invoke(command_line, list(arguments))
    assert result.exit_code == 2
    assert "no such option" in result.stderr
    suggestions = result.stderr.partition("no such option")[2].partition("\n")[0].split(" Did you mean")[1:]
    assert suggestions == ([] if said is None else [f" '{said}'?"])
