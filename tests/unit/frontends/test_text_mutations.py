"""Texts with random mistakes: each is compiled, or refused with a code; none ends in another exception."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.target.registry import load_target
from support.ir_text import SMALL, write_small
from support.tiers import THOROUGH

HOST = load_target("host")
NUM_TEXTS = 3000 if THOROUGH else 60
# Words that are put in the place of others.
WORDS = re.findall(
    r"\S+",
    "0 1 -1 8 9 2147483647 1.5 1:i8 1.0:f32 true x y w b work weights i k main small_add for if let allocate view "
    "call_extern call_packed extern kernel entry constant input output i8 i16 i32 i64 f32 bool buffer data r w rw "
    'scratch parameter "local" "global" "global.stack" "global.workspace" "global.ram" "global.rodata" "w" align=3 '
    "align=0 align=64 ring=0:1 unrolled parallel vectorised status stack=4 & * / % << >> + - < == && ( ) [ ] { } , : =",
)


def mutated(random_: random.Random) -> str:
    tokens = re.findall(r'"[^"]*"|#[^\n]*|\w+|\s+|.', SMALL)
    for _ in range(random_.choice((1, 1, 2, 4))):
        position = random_.randrange(len(tokens))
        match random_.randrange(4):
            case 0:
                del tokens[position]
            case 1:
                tokens[position] = random_.choice(WORDS)
            case 2:
                tokens.insert(position, f" {random_.choice(WORDS)} ")
            case _:
                other = random_.randrange(len(tokens))
                tokens[position], tokens[other] = tokens[other], tokens[position]
    return "".join(tokens)


@pytest.mark.parametrize("part", range(4))
def test_a_text_with_mistakes_is_compiled_or_refused(tmp_path: Path, part: int):
    num_compiled = 0
    for seed in range(part, NUM_TEXTS, 4):
        text = mutated(random.Random(seed))
        path = write_small(tmp_path, text)
        try:
            compile_model(path, HOST)
            num_compiled += 1
        except CompileError as refusal:
            codes = {diagnostic.code[:3] for diagnostic in refusal.diagnostics}
            if not codes <= {"BW1", "BW2", "BW3"}:
                pytest.fail(f"seed {seed}: {refusal}\n{text}")
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}\n{text}")
    assert num_compiled < NUM_TEXTS / 4
