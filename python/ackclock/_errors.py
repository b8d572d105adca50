"""Exceptions, and the warning of notes."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One error of a scenario, with its place."""

    title: str
    """What is wrong, in one line."""
    source: str
    """The file, or what stands for an argument: ``set``, ``<dict>``."""
    line: int
    """The line in it, from 1."""
    column: int
    """The character in the line, from 1."""
    found: str
    """What was found."""
    notes: list[str]
    """What was expected, and other facts."""
    help: str | None
    """What to write instead."""


class ScenarioError(ValueError):
    """A scenario, an override or a point of a sweep is wrong.

    ``str(error)`` is what the command line prints: each error with its line and a caret.
    """

    problems: list[Problem]
    """Everything that is wrong, in the order of the places."""

    def __init__(self, text: str, problems: list[tuple[str, str, int, int, str, list[str], str | None]]) -> None:
        super().__init__(text, problems)
        self.problems = [Problem(*problem) for problem in problems]

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def path(self) -> str | None:
        """The file of the first error, or what stands for an argument."""
        return self.problems[0].source if self.problems else None

    @property
    def line(self) -> int | None:
        """The line of the first error, from 1."""
        return self.problems[0].line if self.problems else None

    @property
    def column(self) -> int | None:
        """The character in the line of the first error, from 1."""
        return self.problems[0].column if self.problems else None


class RunError(RuntimeError):
    """A run failed, or could not begin: it does not fit into memory, or needs the machine's clock."""


class ScenarioWarning(UserWarning):
    """What a person ought to know of a scenario: what the clock leaves out, what may not fit into memory."""
