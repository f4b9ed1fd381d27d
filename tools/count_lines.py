"""What the lines of `src` are: code, docstrings, comments and blanks by room, and how old they are.

    python tools/count_lines.py [--since COMMIT [--blame]]

With a commit, also how many lines lie in files that were there then, whatever they were called; with `--blame`, how
many lines are still as they were, wherever they stand now, which takes minutes. Lines are those that
`tests/unit/test_sizes.py` counts.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "bytewright"
SOURCES = frozenset({".py", ".pyi", ".c", ".h", ".S", ".ld", ".toml"})
KINDS = ("code", "imports", "docstrings", "comments", "blanks")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def files() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in SOURCES]


def kinds_of(path: Path) -> Counter[str]:
    """Lines of a file by kind; of other languages than Python those that are not blank are code."""
    lines = path.read_text(encoding="utf-8").splitlines()
    kinds = ["blanks" if not line.strip() else "code" for line in lines]
    if path.suffix == ".py":
        kinds = [
            "comments" if line.lstrip().startswith("#") else kind
            for line, kind in zip(lines, kinds, strict=True)
        ]
        for kind, node in _marked(ast.parse("\n".join(lines))):
            end = node.lineno if node.end_lineno is None else node.end_lineno
            kinds[node.lineno - 1 : end] = [kind] * (end - node.lineno + 1)
    return Counter(kinds)


def _marked(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    yield from (("imports", node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    for node in ast.walk(tree):
        if isinstance(node, Documented) and ast.get_docstring(node, clean=False) is not None:
            yield "docstrings", node.body[0]


def git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def of_files_that_were_there(commit: str) -> Counter[str]:
    """Lines by whether their file is one of a commit's, renames and copies followed."""
    is_old = dict.fromkeys(git("ls-tree", "-r", "--name-only", commit, "src").split("\n"), True)
    how = ("--reverse", "--topo-order", "--no-merges", "-M40%", "-C", "--name-status", "--format=")
    for line in git("log", *how, f"{commit}..HEAD", "--", "src").splitlines():
        change, *names = line.split("\t")
        if change.startswith("R"):
            is_old[names[1]] = is_old.get(names[0], False)
        elif names:
            is_old.setdefault(names[-1], is_old.get(names[0], False))
    found: Counter[str] = Counter()
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        found["there" if is_old.get(name, False) else "later"] += path.read_bytes().count(b"\n")
    return found


def of_lines_that_were_there(commit: str) -> Counter[str]:
    """Lines by whether a commit had them, wherever they stood and however they were indented."""
    old = set(git("rev-list", commit).split())
    found: Counter[str] = Counter()
    for path in files():
        for line in git("blame", "-w", "-M", "-C", "--line-porcelain", str(path)).splitlines():
            head = line.split(" ", 1)[0]
            if len(head) == 40 and line[:1] != "\t" and len(line.split(" ")) >= 3:
                found["there" if head in old else "later"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--blame", action="store_true")
    asked = parser.parse_args()
    rooms: dict[str, Counter[str]] = {}
    for path in files():
        room = path.relative_to(PACKAGE).parts[0]
        rooms.setdefault(f"{room}/" if path.parent != PACKAGE else "/", Counter()).update(kinds_of(path))
    print(f"{'':12}{'lines':>8}" + "".join(f"{kind:>12}" for kind in KINDS))
    for room, kinds in (*rooms.items(), ("in all", sum(rooms.values(), Counter[str]()))):
        print(f"{room:12}{kinds.total():8}" + "".join(f"{kinds[kind]:12}" for kind in KINDS))
    if asked.since is not None:
        for what, count in (("files", of_files_that_were_there), ("lines", of_lines_that_were_there)):
            if what == "files" or asked.blame:
                found = count(asked.since)
                print(f"of {what} of {asked.since}: {found['there']} lines; later: {found['later']}")


if __name__ == "__main__":
    main()
