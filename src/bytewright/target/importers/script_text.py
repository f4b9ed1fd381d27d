"""Where things stand in a linker script and its included files, for messages that the linker gives no line to."""

import re
from collections.abc import Sequence
from pathlib import Path

from bytewright.target.text_file import read_text

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_INCLUDE = re.compile(r'(?<![\w.])INCLUDE\s+"?([^\s";]+)')


class ScriptText:
    """The text of a script and of the files that it includes, without comments."""

    def __init__(self, path: Path, text: str, include: Sequence[Path]) -> None:
        self.file = str(path)
        self._originals: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._add(str(path), text, (Path(), *include))

    def _add(self, file: str, text: str, folders: Sequence[Path]) -> None:
        self._originals[file] = text
        self._texts[file] = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment.group()), text)
        for name in _INCLUDE.findall(self._texts[file]):
            found = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if found is not None and str(found) not in self._texts:
                self._add(str(found), read_text(found), folders)

    def full_name(self, file: str) -> str:
        """The path of a file that the linker calls as the script does, which is relative to some folder."""
        if file in self._texts:
            return file
        return next((known for known in self._texts if known.endswith(f"/{file}")), file)

    def num_lines(self, file: str) -> int:
        """The number of a file's last line."""
        return max(self._texts.get(file, "").rstrip("\n").count("\n") + 1, 1)

    def first(self, pattern: str) -> str:
        """File and line of the first match; the script itself if there is none."""
        for file, text in self._texts.items():
            match = re.search(pattern, text)
            if match is not None:
                return f"{file}:{text.count(chr(10), 0, match.start()) + 1}"
        return self.file

    def open_comment(self) -> str:
        """File and line of a comment that does not end."""
        for file, text in self._originals.items():
            last = [comment for comment in _COMMENT.finditer(text) if not comment.group().endswith("*/")]
            if last:
                return f"{file}:{text.count(chr(10), 0, last[0].start()) + 1}"
        return self.file

    def region(self, name: str) -> str:
        """File and line of a memory region's declaration, else of its first use."""
        word = rf"(?<![\w.$-]){re.escape(name)}(?![\w.$-])"
        declared = self.first(rf"{word}\s*(?:\([^)]*\))?\s*:\s*(?:ORIGIN|org|o)\b")
        return declared if declared != self.file else self.first(word)
