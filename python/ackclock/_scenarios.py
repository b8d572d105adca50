"""The scenarios that come with the package."""

from __future__ import annotations

from pathlib import Path


def scenarios() -> dict[str, Path]:
    """The scenarios of the gallery that come with the package: files by their names, such as ``smoke/sweep``.

    >>> ackclock.run(ackclock.scenarios()["teacup/two-newreno"])

    They are read like any file; what a README says of each is beside it.
    """
    folder = Path(__file__).with_name("scenarios")
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.toml"))}
