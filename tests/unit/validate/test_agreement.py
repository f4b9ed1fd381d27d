"""What counts as equal: floats beside what is not finite."""

import numpy as np
import pytest

from bytewright.validate.agreement import is_equal

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("own", "other", "same"),
    [
        ((INF, 1.0), (INF, 1.0), True),
        ((NAN, 1.0), (NAN, 1.0), True),
        ((NAN, 1.0, 1.0), (1.0, 2.0, INF), False),
        ((INF, -7.0, 0.0), (INF, 5.0, 0.0), False),
        ((INF, 1.0), (-INF, 1.0), False),
        ((1.0, 1.0), (INF, 1.0), False),
        ((1.0, 1.0), (NAN, 1.0), False),
        ((1.000001, -1.0), (1.0, -1.0), True),
    ],
)
def test_what_is_not_finite_is_the_same_in_both(
    own: tuple[float, ...], other: tuple[float, ...], same: bool
) -> None:
    assert is_equal(np.array(own, np.float32), np.array(other, np.float32)) is same
