"""What ``--out`` has written."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from ackclock._core import Lines
from ackclock._results import Records, Result, Sweep
from ackclock._stored import StoredSweep, is_stored

_MANIFEST = "manifest.json"
_DIGITS = 4


def read(directory: str | os.PathLike[str]) -> Result | Sweep:
    """Reads the output directory of a run (:class:`Result`) or a sweep (:class:`Sweep`).

    Records are read when they are asked for. ``manifest`` has the resolved scenario as TOML
    (``scenario``), the hash of every file (``files``), and ``partial`` if runs are missing.

    A directory of ``ackclock.sweep(..., out=...)`` is a :class:`StoredSweep`; RunError is raised if its
    sweep was broken off.

    Raises FileNotFoundError without the directory, ValueError if it holds no complete output.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise FileNotFoundError(2, "No such directory", str(folder))
    if is_stored(folder):
        return StoredSweep(folder)
    manifest = _manifest(folder)
    files = manifest["files"]
    for name in files:
        parts = Path(name).parts
        if Path(name).is_absolute() or ".." in parts:
            raise ValueError(f"{folder / _MANIFEST}: the file {name!r} is outside the directory")
    if "summary.jsonl" in files:
        lines = Lines.from_text(_text(folder / "summary.jsonl"))
        digits = max(len(str(max(int(manifest.get("runs", 1)) - 1, 0))), _DIGITS)
        return Sweep(lines, partial(_of_run, folder, files, digits), manifest)
    if "summary.json" in files:
        lines = Lines.from_document(_text(folder / "summary.json"))
        return Result(lines, 0, _records(folder, files, ""), manifest)
    raise ValueError(f"{folder / _MANIFEST} lists no summary: expected summary.json or summary.jsonl")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8: {error}") from error


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / _MANIFEST
    if not path.exists():
        raise ValueError(f"{folder} holds no complete output of ackclock: there is no {_MANIFEST}")
    try:
        manifest = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    ours = isinstance(manifest, dict) and isinstance(manifest.get("ackclock"), str)
    if not ours or not isinstance(manifest.get("files"), dict):
        raise ValueError(f"{path}: not a manifest of ackclock: expected the keys `ackclock` and `files`")
    found: dict[str, Any] = manifest
    return found


def _of_run(folder: Path, files: dict[str, Any], digits: int, run: int) -> Records:
    return _records(folder, files, f"runs/{run:0{digits}}/")


def _records(folder: Path, files: dict[str, Any], prefix: str) -> Records:
    summaries = ("summary.json", "summary.jsonl")
    inside = (name.removeprefix(prefix) for name in files if name.startswith(prefix))
    names = [name for name in inside if name not in summaries and not name.startswith("runs/")]
    return Records(names, lambda name: (folder / prefix / name).read_bytes())
