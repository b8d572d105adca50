"""Python values as TOML: what a dict is to a scenario."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MOST_DEPTH = 50


def _string(text: str, where: str) -> str:
    def escape(c: str) -> str:
        if c in _ESCAPES:
            return _ESCAPES[c]
        if 0xD800 <= ord(c) < 0xE000:
            raise ValueError(f"{where}: the text holds half of a surrogate pair, which is no character")
        return f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F else c

    return '"' + "".join(map(escape, text)) + '"'


def key(name: object, where: str) -> str:
    """A key, in quotes if it has to be."""
    if not isinstance(name, str):
        raise TypeError(f"{where}: a key is {name!r}, expected a string")
    return name if _BARE.match(name) else _string(name, where)


def value(found: Any, where: str, depth: int = 0) -> str:
    """A value in one line. ``where`` is what errors call it."""
    if depth > _MOST_DEPTH:
        raise ValueError(f"{where}: nested more than {_MOST_DEPTH} deep")
    if isinstance(found, os.PathLike):
        found = os.fspath(found)
    if hasattr(found, "item") and not isinstance(found, (str, bytes)) and getattr(found, "ndim", None) == 0:
        found = found.item()
    elif hasattr(found, "tolist"):
        found = found.tolist()
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int):
        return str(int(found))
    if isinstance(found, float):
        if math.isfinite(found):
            return repr(float(found))
        return "nan" if math.isnan(found) else ("inf" if found > 0 else "-inf")
    if isinstance(found, str):
        return _string(str(found), where)
    if isinstance(found, Mapping):
        items = (f"{key(k, where)} = {value(v, f'{where}.{k}', depth + 1)}" for k, v in found.items())
        return "{ " + ", ".join(items) + " }" if found else "{}"
    if isinstance(found, Sequence) and not isinstance(found, (bytes, bytearray, memoryview)):
        return "[" + ", ".join(value(v, f"{where}[{n}]", depth + 1) for n, v in enumerate(found)) + "]"
    raise TypeError(
        f"{where}: {found!r} is of type {type(found).__name__}; expected a string, a number, a bool, a list or a dict"
    )


def document(scenario: Mapping[str, Any]) -> str:
    """A scenario as the text of a file: sections, and a line for each key."""
    plain: list[str] = []
    sections: list[str] = []
    for name, found in scenario.items():
        _section(key(name, "the scenario"), found, name, plain, sections)
    return "\n".join([*plain, *sections]) + "\n"


def _section(path: str, found: Any, where: str, plain: list[str], sections: list[str]) -> None:
    if isinstance(found, Mapping):
        # `[links.a]`: tables within `links` are sections of their own.
        inner = [(k, v) for k, v in found.items() if path == "links" and isinstance(v, Mapping)]
        lines = [f"{key(k, where)} = {value(v, f'{where}.{k}')}" for k, v in found.items() if (k, v) not in inner]
        if lines or not inner:
            sections.append("\n".join([f"\n[{path}]", *lines]))
        for k, v in inner:
            _section(f"{path}.{key(k, where)}", v, f"{where}.{k}", plain, sections)
    elif isinstance(found, Sequence) and found and all(isinstance(v, Mapping) for v in found):
        for number, table in enumerate(found):
            lines = [f"{key(k, where)} = {value(v, f'{where}[{number}].{k}')}" for k, v in table.items()]
            sections.append("\n".join([f"\n[[{path}]]", *lines]))
    else:
        plain.append(f"{path} = {value(found, where)}")


def overrides(given: Mapping[str, Any] | Iterable[str] | None, flag: str = "set") -> list[tuple[str, str]]:
    """Overrides as pairs of what errors call them and ``KEY=VALUE``.

    A mapping has values of Python. An iterable has texts as on the command line.
    """
    if given is None:
        return []
    if isinstance(given, Mapping):
        pairs = []
        for path, found in given.items():
            if not isinstance(path, str):
                raise TypeError(f"{flag}: a key is {path!r}, expected a path such as 'links.bottleneck.delay'")
            if "=" in re.sub(r'"[^"]*"', "", path):
                raise ValueError(f"{flag}: `{path}` is no path: found `=`")
            pairs.append((flag, f"{path}={value(found, f'{flag}: {path}')}"))
        return pairs
    if isinstance(given, str):
        raise TypeError(f'{flag}: found a string, expected {{"KEY": VALUE}} or a list of "KEY=VALUE"')
    texts = list(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f'{flag}: found {text!r}, expected "KEY=VALUE"')
    return [(flag, text) for text in texts]
