"""What ``--out`` has written, and ``out=``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ackclock._core import Lines, manifest
from ackclock._results import Result, Sweep
from ackclock._stored import SUMMARIES, SUMMARY, StoredSweep, single


def read(directory: str | os.PathLike[str]) -> Result | Sweep:
    """Reads the output directory of a run (:class:`Result`) or a sweep (:class:`StoredSweep`), whether the command
    line has written it or ``ackclock.sweep(..., out=...)``.

    Results of a sweep, and records, are read when they are asked for. ``manifest`` has the resolved scenario as TOML
    (``scenario``), the hash of every file (``files``), and ``partial`` if runs are missing.

    Raises FileNotFoundError without the directory, RunError if its sweep was broken off without a manifest, ValueError
    if it holds no complete output.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise FileNotFoundError(2, "No such directory", str(folder))
    found: dict[str, Any] = json.loads(manifest(folder))
    files = found.get("files")
    if not isinstance(files, dict):
        raise ValueError(f"{folder / 'manifest.json'}: not a manifest of ackclock: expected the key `files`")
    for name in files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(f"{folder / 'manifest.json'}: the file {name!r} is outside the directory")
    if SUMMARIES in files:
        return StoredSweep(folder, found)
    if SUMMARY in files:
        path = folder / SUMMARY
        try:
            lines = Lines.from_document(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8: {error}") from error
        return Result(lines, 0, single(folder, files), found)
    raise ValueError(f"{folder / 'manifest.json'} lists no summary: expected {SUMMARY} or {SUMMARIES}")
