"""Devicetrees become targets; what is wrong in them has a file and a line."""

from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError, Diagnostic, ExitCode
from bytewright.target import MemoryAccess, load_file
from bytewright.target.importers import ImportedTarget, ImportOptions, import_target

pytest.importorskip("devicetree")

# A board in the manner of Zephyr's: the system-on-chip in an included file, the board names what it uses.
CHIP = """#include "sizes.h"
/ {
	#address-cells = <1>;
	#size-cells = <1>;

	cpus {
		#address-cells = <1>;
		#size-cells = <0>;

		cpu0: cpu@0 {
			device_type = "cpu";
			compatible = "arm,cortex-m33f";
			reg = <0>;
		};
	};

	itcm: memory@10000000 {
		compatible = "zephyr,memory-region", "arm,itcm";
		reg = <0x10000000 0x8000>;
		zephyr,memory-region = "ITCM";
	};

	soc {
		#address-cells = <1>;
		#size-cells = <1>;
		compatible = "simple-bus";
		ranges;

		sram0: memory@20000000 {
			compatible = "mmio-sram";
		};

		backup: memory@40024000 {
			compatible = "zephyr,memory-region", "mmio-sram";
			reg = <0x40024000 0x1000>;
			zephyr,memory-region = "BACKUP";
			status = "disabled";
		};

		local: peripheral@50000000 {
			#address-cells = <1>;
			#size-cells = <1>;
			ranges = <0x0 0x50000000 0x10000>, <0x10000 0x60000000 0x10000>;

			packets: memory@11000 {
				compatible = "zephyr,memory-region", "mmio-sram";
				reg = <0x11000 0x2000>;
				zephyr,memory-region = "Packet-RAM";
			};
		};

		flash-controller@50039000 {
			compatible = "acme,flash-controller";
			reg = <0x50039000 0x1000>;
			#address-cells = <1>;
			#size-cells = <1>;

			flash0: flash@0 {
				compatible = "soc-nv-flash";
				reg = <0x0 KIB(1024)>;
			};
		};
	};
};
"""
BOARD = """/dts-v1/;
#include <acme/chip.dtsi>

/ {
	model = "Acme devkit 33";
	compatible = "acme,devkit-33";

	chosen {
		zephyr,sram = &sram0;
		zephyr,flash = &flash0;
		zephyr,code-partition = &slot0;
	};

	banks: memory@60100000 {
		device_type = "memory";
		reg = <0x60100000 0x100000>, <0x60400000 0x100000>;
	};
};

&sram0 {
	reg = <0x20000000 KIB(256)>;
};

&flash0 {
	partitions {
		compatible = "fixed-partitions";
		#address-cells = <1>;
		#size-cells = <1>;

		slot0: partition@10000 {
			reg = <0x10000 0x70000>;
		};
	};
};
"""


def _write(folder: Path, board: str = BOARD, chip: str = CHIP) -> Path:
    (folder / "acme").mkdir(exist_ok=True)
    (folder / "acme" / "chip.dtsi").write_text(chip, encoding="utf-8")
    (folder / "acme" / "sizes.h").write_text("#define KIB(n) (n * 1024)\n", encoding="utf-8")
    path = folder / "devkit.dts"
    path.write_text(board, encoding="utf-8")
    return path


def _imported(folder: Path, board: str) -> ImportedTarget:
    return import_target(_write(folder, board))


def _refusal(path: Path) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        import_target(path)
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW202"
    return diagnostic


def test_a_board_becomes_a_target(tmp_path: Path) -> None:
    target = import_target(_write(tmp_path)).target
    assert [(m.name, m.base, m.size_bytes, m.access, m.section) for m in target.memories] == [
        ("itcm", 0x10000000, 0x8000, MemoryAccess.READ_WRITE, "ITCM"),
        ("sram0", 0x20000000, 0x40000, MemoryAccess.READ_WRITE, None),
        ("packet_ram", 0x60001000, 0x2000, MemoryAccess.READ_WRITE, "Packet_RAM"),
        ("flash0", 0x00010000, 0x70000, MemoryAccess.READ_ONLY, None),
        ("banks", 0x60100000, 0x100000, MemoryAccess.READ_WRITE, ".banks"),
        ("banks_2", 0x60400000, 0x100000, MemoryAccess.READ_WRITE, ".banks_2"),
    ]
    assert (target.name, target.description) == ("devkit-33", "Acme devkit 33")
    assert (target.default_device.isa.name, "micro" in target.tags) == ("cortex-m33", True)
    assert target.contexts[0].memory == "sram0"
    names = [pool.name for pool in target.workspace_pools]
    assert names == ["sram0", "packet_ram", "banks", "banks_2", "itcm"]
    assert [(pool.name, pool.size_bytes) for pool in target.parameter_pools] == [("flash0", 0x70000)]


@pytest.mark.parametrize(
    ("flash", "partitions", "expected"),
    [
        ("", "", (0x08030000, 0x40000)),  # counted from the flash
        ("", "ranges;", (0x08030000, 0x40000)),  # the flash does not translate
        (
            "ranges = <0 0x08010000 0x80000>; #address-cells = <1>; #size-cells = <1>;",
            "ranges;",
            (0x08030000, 0x40000),
        ),
        (
            "ranges; #address-cells = <1>; #size-cells = <1>;",
            "ranges;",
            (0x08010000, 0x80000),
        ),  # 0x20000: outside
    ],
)
def test_the_code_partition_is_the_memory(
    flash: str, partitions: str, expected: tuple[int, int], tmp_path: Path
) -> None:
    path = tmp_path / "board.dts"
    path.write_text(
        "/dts-v1/; / { #address-cells = <1>; #size-cells = <1>;"
        "chosen { zephyr,sram = &ram; zephyr,flash = &flash; zephyr,code-partition = &slot; };"
        'ram: ram@20000000 { compatible = "mmio-sram"; reg = <0x20000000 0x10000>; };'
        f'flash: flash@8010000 {{ compatible = "soc-nv-flash"; reg = <0x08010000 0x80000>; {flash}'
        f"partitions {{ #address-cells = <1>; #size-cells = <1>; {partitions}"
        "slot: partition@20000 { reg = <0x20000 0x40000>; }; }; }; };"
    )
    imported = import_target(path)
    memory = imported.target.memory("flash")
    assert (memory.base, memory.size_bytes) == expected
    assert imported.target.pool("flash").size_bytes == expected[1]
    assert ("is no part of" in imported.text) == (expected[1] == 0x80000)


def test_the_text_says_what_was_read_and_loads(tmp_path: Path) -> None:
    imported = import_target(_write(tmp_path), ImportOptions(name="mine", isa="cortex-m55"))
    assert "# /soc/memory@40024000 is left out: its status is not okay\n" in imported.text
    assert f"# /soc/memory@20000000, zephyr,sram, {tmp_path / 'devkit.dts'}:21\n" in imported.text
    chip = tmp_path / "acme" / "chip.dtsi"
    assert f"# /memory@10000000, {chip}:19\n" in imported.text
    path = tmp_path / "mine.toml"
    path.write_text(imported.text, encoding="utf-8")
    assert load_file(path) == imported.target
    assert (imported.target.name, imported.target.default_device.isa.name) == ("mine", "cortex-m55")


def test_an_imported_target_compiles_a_model(tmp_path: Path, shared_models: Path) -> None:
    from bytewright.compiler.pipeline import compile_model

    compiled = compile_model(shared_models / "kws_ref_model.tflite", import_target(_write(tmp_path)).target)
    used = {pool["name"]: pool["used_bytes"] for pool in compiled.document["pools"]}
    assert 0 < used["sram0"] <= 0x40000
    assert 0 < used["flash0"] <= 0x70000


def test_the_merged_tree_of_a_build_needs_no_preprocessor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("PATH", "")
    text = """/dts-v1/;
/ {
	#address-cells = <2>;
	#size-cells = <2>;
	memory@100000000 { device_type = "memory"; reg = <0x1 0x0 0x0 0x10000>; };
	cpus { #address-cells = <1>; #size-cells = <0>;
		cpu@0 { compatible = "arm,cortex-a53"; reg = <0>; status = "disabled"; };
		cpu@1 { compatible = "sifive,e31", "riscv"; riscv,isa = "rv64imac_zicsr"; reg = <1>; };
		cpu@2 { compatible = "arm,cortex-m0+"; reg = <2>; };
	};
};
"""
    imported = _imported(tmp_path, text)
    (memory,) = imported.target.memories
    assert (memory.name, memory.base, memory.size_bytes) == ("memory", 0x100000000, 0x10000)
    assert imported.target.default_device.isa.name == "rv64imac"
    assert imported.remarks == ("/cpus/cpu@2 is left out: only the first processor becomes a device",)
    with pytest.raises(CompileError) as caught:
        import_target(_write(tmp_path))
    assert caught.value.diagnostics[0].code == "BW501"


@pytest.mark.parametrize(
    ("compatible", "isa"),
    [
        ("arm,cortex-m55", "cortex-m55"),
        ("arm,cortex-m4f", "cortex-m4"),
        ("arm,cortex-m0+", "cortex-m0plus"),
        ("arm,cortex-r5f", "cortex-r5"),
        ("acme,core", "cortex-m"),
    ],
)
def test_the_processor_gives_the_instruction_set(tmp_path: Path, compatible: str, isa: str) -> None:
    path = _write(tmp_path, chip=CHIP.replace("arm,cortex-m33f", compatible))
    imported = import_target(path)
    assert imported.target.default_device.isa.name == isa
    assert any("no known kind: acme,core" in remark for remark in imported.remarks) == (isa == "cortex-m")


def test_program_and_data_may_share_a_memory(tmp_path: Path) -> None:
    target = _imported(tmp_path, BOARD.replace("flash = &flash0", "flash = &sram0")).target
    assert target.memory("flash0").access is MemoryAccess.READ_ONLY
    assert target.memory("sram0").access is MemoryAccess.READ_WRITE


def test_of_overlapping_memories_the_chosen_one_is_kept(tmp_path: Path) -> None:
    whole = 'whole: memory@20000000 { device_type = "memory"; reg = <0x20000000 0x80000>; };\n\tbanks:'
    imported = import_target(_write(tmp_path, chip=CHIP.replace("itcm:", whole.replace("banks:", "itcm:"))))
    assert "whole" not in [memory.name for memory in imported.target.memories]
    assert any("shares 262144 B with sram0" in remark for remark in imported.remarks)


@pytest.mark.parametrize(
    ("old", "new", "message", "line"),
    [
        (
            'model = "Acme',
            'model "Acme',
            "expected '{', '=', or ';' (column 8)",
            5,
        ),
        ("&sram0;", "&sram9;", "/chosen: undefined node label 'sram9'", 9),
        ("zephyr,flash = &flash0", "zephyr,flash = <0>", "expected property 'zephyr,flash' on /chosen", 10),
        (
            "0x60400000 0x100000>",
            "0x60400000>",
            "'reg' of /memory@60100000 has 12 B, not a multiple of 8 B",
            16,
        ),
        ("zephyr,sram = &sram0", "zephyr,sram = &backup", "zephyr,sram is /soc/memory@40024000, whose", 9),
        ("\treg = <0x20000000 KIB(256)>;\n", "", "memory /soc/memory@20000000 has no 'reg'", 20),
        ('"acme,devkit-33"', "<33>", "expected property 'compatible' on /", 6),
        ("\n};\n\n&sram0", "\n};\n\n&sram7", "undefined node label 'sram7'", 20),
        (
            "reg = <0x10000 0x70000>",
            "reg = <0x10000>",
            "'reg' of /soc/flash-controller@50039000/flash@0/par",
            31,
        ),
        ("banks: memory", "slot0: memory", "Label 'slot0' appears on", 14),
        ("<acme/chip.dtsi>", '"none.dtsi"', "the C preprocessor: none.dtsi: No such file", 2),
    ],
)
def test_a_broken_tree_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, message: str, line: int
) -> None:
    assert BOARD.count(old) == 1
    path = _write(tmp_path, BOARD.replace(old, new))
    diagnostic = _refusal(path)
    assert diagnostic.message.startswith(message)
    assert diagnostic.where == f"{path}:{line}"


@pytest.mark.parametrize(
    ("old", "new", "message", "line"),
    [
        ("reg = <0x0 KIB(1024)>;", "reg = <0x0 KIB(1024>;", "", 59),
        ("0x60000000 0x10000>;", "0x60000000>;", "'ranges' of /soc/peripheral@50000000 has 20 B", 43),
        ("reg = <0x10000000 0x8000>", 'reg = "text"', "'reg' of /memory@10000000 has 5 B", 19),
    ],
)
def test_a_mistake_in_an_included_file_is_placed_there(
    tmp_path: Path, old: str, new: str, message: str, line: int
) -> None:
    assert CHIP.count(old) == 1
    diagnostic = _refusal(_write(tmp_path, chip=CHIP.replace(old, new)))
    assert diagnostic.message.startswith(message)
    assert (diagnostic.where or "").startswith(f"{tmp_path / 'acme'}/chip.dtsi:")
    if message:
        assert diagnostic.where == f"{tmp_path / 'acme' / 'chip.dtsi'}:{line}"


def test_files_included_by_the_tree_itself_are_placed_too(tmp_path: Path) -> None:
    part = tmp_path / "part.dtsi"
    part.write_text(
        '/ {\n\tx: memory@0 {\n\t\tdevice_type = "memory";\n\t\treg = <0>;\n\t};\n};\n', encoding="utf-8"
    )
    path = tmp_path / "a.dts"
    path.write_text('/dts-v1/;\n/include/ "part.dtsi"\n', encoding="utf-8")
    assert _refusal(path).where == f"{part}:4"


def test_a_mistake_that_the_parser_trips_over_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "a.dts"
    path.write_text("/dts-v1/;\n/ { a = <09>; };\n", encoding="utf-8")
    assert _refusal(path).where == str(path)


def test_a_tree_without_memories_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.dts"
    path.write_text("/dts-v1/;\n/ { };\n", encoding="utf-8")
    diagnostic = _refusal(path)
    assert (diagnostic.message, diagnostic.where) == (
        "the tree describes no memory that is enabled",
        str(path),
    )
