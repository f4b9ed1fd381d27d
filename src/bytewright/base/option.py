"""How an option of compiling is declared: once, on the field that keeps its value.

The command line and the Python interface are both made from these declarations. The first gives every option as text,
which `parse` reads; the second also takes the values that each kind of option may have.
"""

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

_Value = TypeVar("_Value")


class OptionSyntaxError(ValueError):
    """The text of an option is malformed; the command line exits with status 2."""


def two_sides(text: str, form: str, *, at_last: bool = False) -> tuple[str, str]:
    """Both sides of the first `=`, or of the last one, neither of them empty.

    Raises:
        OptionSyntaxError: The text is not of the form, which is for people.
    """
    left, _, right = text.rpartition("=") if at_last else text.partition("=")
    if not left or not right:
        raise OptionSyntaxError(f"{text!r} is not {form}")
    return left, right


@dataclass(frozen=True, slots=True)
class Text:
    """Any text."""

    metavar: str

    def read(self, name: str, given: object) -> str:
        """The text.

        Args:
            name: The argument in Python; here and in what follows.
            given: Its value.

        Raises:
            ValueError: It is nothing that such an argument may be.
        """
        return checked(name, given, (str,), "a text")


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of a form, as many as there are; one alone is a list of one."""

    parse: Callable[[str], object]
    metavar: str

    def read(self, name: str, given: object) -> tuple[object, ...]:
        """Each of them, parsed."""
        if isinstance(given, str):
            return (self.parse(given),)
        if isinstance(given, bytes | bytearray):
            raise ValueError(f"{name} is {given!r}, not a list of texts")
        texts: Iterable[object] = checked(name, given, (Iterable,), "a list of texts")
        return tuple(self.parse(checked(f"a member of {name}", text, (str,), "a text")) for text in texts)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several, each a member of an enumeration, by its value."""

    members: type[Enum]

    def read(self, name: str, given: object) -> Enum:
        """The member."""
        for member in self.members:
            if isinstance(given, str) and given == member.value:
                return member
        values = ", ".join(repr(member.value) for member in self.members)
        raise ValueError(f"{name} is {given!r}, not one of {values}")


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes, or a text that says one; a truth value is neither."""

    parse: Callable[[str], object]
    metavar: str = "SIZE"

    def read(self, name: str, given: object) -> object:
        """The size, parsed."""
        if type(given) is not int and not isinstance(given, str):
            raise ValueError(f"{name} is {given!r}, not a number of bytes or a text")
        try:
            return self.parse(str(given))
        except OptionSyntaxError as error:
            raise OptionSyntaxError(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number of 1 or more; a truth value is none."""

    metavar: str = "N"

    def read(self, name: str, given: object) -> int:
        """The number."""
        if type(given) is not int or given < 1:
            raise ValueError(f"{name} is {given!r}, not a whole number of 1 or more")
        return given


@dataclass(frozen=True, slots=True)
class File:
    """A file that is read."""

    metavar: str

    def read(self, name: str, given: object) -> Path:
        """Its path."""
        path: str | PathLike[str] = checked(name, given, (str, PathLike), "a path")
        return Path(path)


@dataclass(frozen=True, slots=True)
class Switch:
    """Yes or no."""

    def read(self, name: str, given: object) -> bool:
        """Which of them."""
        return checked(name, given, (bool,), "True or False")


Kind = Text | Texts | Choice | Size | Count | File | Switch


@dataclass(frozen=True, slots=True)
class Option:
    """What declares that a field is an option: it stands in the field's `Annotated`.

    Attributes:
        help: A sentence for the command line; a default that is a text is added to it.
        flag: On the command line; None for the field's name, with dashes.
        is_of_c: It changes the C and nothing else, so that what plans alone does not have it.
    """

    kind: Kind
    help: str
    flag: str | None = None
    is_of_c: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """An option of a dataclass.

    Attributes:
        name: Of the field, and of the argument in Python.
        flag: On the command line.
        default: Where it is None, the option may be None: then something else decides.
    """

    name: str
    flag: str
    default: object
    option: Option

    def read(self, given: object) -> object:
        """The value of an argument in Python."""
        if given is None and self.default is None:
            return None
        return self.option.kind.read(self.name, given)

    def words(self, given: object) -> Iterator[str]:
        """A value as it is written, one word for each of several; none where it is the default.

        Of a path the file's name.
        """
        if given == self.default:
            return
        if isinstance(given, bool):
            yield self.flag if given else f"--no-{self.flag.removeprefix('--')}"
            return
        for value in given if isinstance(given, tuple) else (given,):
            text = (
                value.value if isinstance(value, Enum) else value.name if isinstance(value, Path) else value
            )
            yield f"{self.flag} {text}"


def declarations(owner: Any) -> tuple[Declaration, ...]:
    """The options among a dataclass's fields, in their order."""
    hints = get_type_hints(owner, include_extras=True)
    return tuple(
        Declaration(known.name, option.flag or f"--{known.name.replace('_', '-')}", known.default, option)
        for known in fields(owner)
        for option in getattr(hints[known.name], "__metadata__", ())
        if isinstance(option, Option)
    )


def words(options: object) -> tuple[str, ...]:
    """The options of a dataclass as they are written, one each, those that are not as by default."""
    given = ((declaration, getattr(options, declaration.name)) for declaration in declarations(type(options)))
    return tuple(word for declaration, value in given for word in declaration.words(value))


def checked(name: str, given: object, kinds: tuple[type, ...], what: str) -> Any:
    """The argument, where it is of a type that it may have."""
    if not isinstance(given, kinds):
        raise ValueError(f"{name} is {reprlib.repr(given)}, not {what}")
    return given


def chosen(owner: Callable[..., _Value], values: Mapping[str, object]) -> _Value:
    """The dataclass with those of the values that are its options."""
    names = {declaration.name for declaration in declarations(owner)}
    return owner(**{name: value for name, value in values.items() if name in names})
