import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.tensors import check_inputs, output_size_bytes, pack, random_inputs, unpack_outputs
from support.tiny_bundle import write_tiny_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return read_bundle(write_tiny_bundle(tmp_path))


def with_input(directory: Path, dtype: str, size_bytes: int) -> Bundle:
    write_tiny_bundle(directory)
    path = directory / "plan.json"
    plan = json.loads(path.read_text())
    tensor = {
        **plan["inputs"][0],
        "name": "x",
        "c_name": "x",
        "dtype": dtype,
        "shape": [1000],
        "extents": [1000],
    }
    plan["inputs"] = [{**tensor, "size_bytes": size_bytes}]
    path.write_text(json.dumps(plan))
    return read_bundle(directory)


def messages(bundle: Bundle, arrays: list[np.ndarray]) -> list[str]:
    with pytest.raises(CompileError) as caught:
        check_inputs(bundle.plan, arrays)
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"BW205"}
    return [diagnostic.message for diagnostic in caught.value.diagnostics]


def test_a_wrong_number_of_inputs_is_refused(bundle: Bundle) -> None:
    assert messages(bundle, []) == ["model 'tiny' has 1 inputs, 0 were given"]


def test_a_wrong_shape_is_refused(bundle: Bundle) -> None:
    assert messages(bundle, [np.zeros(16, np.int8)]) == [
        "input 'serving/left' must be int8[1, 16], the array is int8[16]"
    ]


def test_a_wrong_type_is_refused(bundle: Bundle) -> None:
    assert messages(bundle, [np.zeros((1, 16), np.uint8)]) == [
        "input 'serving/left' must be int8[1, 16], the array is uint8[1, 16]"
    ]


def test_lists_are_what_numpy_makes_of_them(bundle: Bundle) -> None:
    """Scalars of numpy keep their type; Python's are int64 or float64, and rows of several lengths are no array."""
    (checked,) = check_inputs(bundle.plan, [[[np.int8(value) for value in range(16)]]]).arrays
    assert (checked.dtype, checked.tobytes()) == (np.int8, bytes(range(16)))
    for given, found in (
        ([list(range(16))], "the array is int64[1, 16]"),
        (3.5, "the array is float64[]"),
        ([[1], [2, 3]], "it is no array"),
    ):
        with pytest.raises(CompileError) as caught:
            check_inputs(bundle.plan, [given])
        (diagnostic,) = caught.value.diagnostics
        assert (diagnostic.code, diagnostic.message) == (
            "BW205",
            f"input 'serving/left' must be int8[1, 16], {found}",
        )


def test_a_transposed_view_is_made_contiguous(bundle: Bundle) -> None:
    array = np.arange(32, dtype=np.int8).reshape(16, 2).T[:1]
    (checked,) = check_inputs(bundle.plan, [array]).arrays
    assert checked.tobytes() == bytes(range(0, 32, 2))


def test_random_integers_cover_their_range_and_repeat(tmp_path: Path) -> None:
    bundle = with_input(tmp_path, "i8", 1000)
    (first,), (again,), (other,) = (random_inputs(bundle.plan, seed) for seed in (7, 7, 8))
    assert first.dtype == np.int8
    assert (first.min(), first.max()) == (-128, 127)
    assert (first == again).all()
    assert (first != other).any()


def test_random_inputs_are_the_same_in_every_version(bundle: Bundle) -> None:
    # The stream of numpy's legacy generator is frozen; this digest was taken once.
    digest = hashlib.sha256(random_inputs(bundle.plan, 0)[0].tobytes()).hexdigest()
    assert digest[:16] == "4c6ca2d8faa72834"


def test_random_floats_are_between_minus_one_and_one(tmp_path: Path) -> None:
    (array,) = random_inputs(with_input(tmp_path, "f32", 4000).plan, 1)
    assert array.dtype == np.float32
    assert -1 <= array.min() < -0.9
    assert 0.9 < array.max() <= 1


def test_outputs_are_unpacked_inference_by_inference(bundle: Bundle) -> None:
    first, second = np.arange(16, dtype=np.int8).reshape(1, 16), np.full((1, 16), -3, np.int8)
    batch = [check_inputs(bundle.plan, [array]) for array in (first, second)]
    (one,), (two,) = unpack_outputs(bundle.plan, first.tobytes() + second.tobytes(), batch)
    assert (one == first).all()
    assert (two == second).all()


def with_open_batch(directory: Path) -> Bundle:
    """Two inputs [n, 4] and an output i16[n, 4], for n from 2 to 3."""
    write_tiny_bundle(directory)
    path = directory / "plan.json"
    plan = json.loads(path.read_text())
    operand = {**plan["inputs"][0], "dtype": "i8", "shape": [3, 4], "extents": ["n", 4], "size_bytes": 12}
    plan["inputs"] = [{**operand, "name": name, "c_name": name} for name in ("a", "b")]
    plan["outputs"] = [{**operand, "name": "y", "c_name": "y", "dtype": "i16", "size_bytes": 24}]
    plan["symbols"] = [{"name": "n", "lower": 2, "upper": 3}]
    path.write_text(json.dumps(plan))
    return read_bundle(directory)


def test_inputs_say_the_extents_of_a_run(tmp_path: Path) -> None:
    bundle = with_open_batch(tmp_path)
    for batch in (2, 3):
        checked = check_inputs(bundle.plan, [np.zeros((batch, 4), np.int8)] * 2)
        assert checked.extents == {"n": batch}
    assert [array.shape for array in random_inputs(bundle.plan, 0)] == [(3, 4), (3, 4)]


@pytest.mark.parametrize("batch", [0, 1, 4])
def test_an_extent_out_of_its_range_is_refused(tmp_path: Path, batch: int) -> None:
    bundle = with_open_batch(tmp_path)
    assert messages(bundle, [np.zeros((batch, 4), np.int8)] * 2) == [
        f"input '{name}' must be int8[2..3, 4], the array is int8[{batch}, 4]" for name in ("a", "b")
    ]


def test_inputs_that_disagree_about_an_extent_are_refused(tmp_path: Path) -> None:
    arrays = [np.zeros((2, 4), np.int8), np.zeros((3, 4), np.int8)]
    assert messages(with_open_batch(tmp_path), arrays) == [
        "input 'b' must be int8[2..3, 4], the array is int8[3, 4]"
    ]


def test_inferences_have_the_bytes_of_their_own_extents(tmp_path: Path) -> None:
    bundle = with_open_batch(tmp_path)
    batch = [
        check_inputs(bundle.plan, [np.full((n, 4), n, np.int8), np.full((n, 4), 9, np.int8)]) for n in (2, 3)
    ]
    expected = b"\2\0\0\0" + b"\5\0\0\0"  # inferences, how often each runs,
    expected += b"\0\0\0\0"  # and whether state is kept
    every = b"\xff" * 4  # entry
    expected += every + b"\2\0\0\0" + b"\2" * 8 + b"\x09" * 8
    expected += every + b"\3\0\0\0" + b"\3" * 12 + b"\x09" * 12
    assert pack(batch, 5) == expected
    written = np.arange(20, dtype="<i2").tobytes()
    assert output_size_bytes(bundle.plan, batch) == len(written)
    (small,), (large,) = unpack_outputs(bundle.plan, written, batch)
    assert small.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert large.tolist() == [[8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19]]
