"""What tests share: the scenarios, and the program of the command line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Tests of a wheel are elsewhere than the scenarios.
ROOT = Path(os.environ.get("ACKCLOCK_REPOSITORY", Path(__file__).resolve().parents[2]))
SMOKE = ROOT / "scenarios" / "smoke"


def small(**more: Any) -> dict[str, Any]:
    """A scenario of two flows that takes a few milliseconds."""
    scenario: dict[str, Any] = {
        "schema": 1,
        "title": "Two flows",
        "run": {"duration": "3s", "seed": 7},
        "links": {"bottleneck": {"rate": "2mbit", "delay": "10ms", "queue": {"kind": "pfifo", "limit": "30p"}}},
        "flows": [
            {"id": "reno", "path": ["bottleneck"], "cc": "newreno"},
            {"id": "cubic", "path": ["bottleneck"], "cc": "cubic", "start": "100ms"},
        ],
    }
    return scenario | more


@pytest.fixture(scope="session")
def command_line() -> Callable[..., str]:
    """Runs the program of the command line, which ACKCLOCK names, and gives its standard output."""
    program = os.environ.get("ACKCLOCK")
    if program is None:
        pytest.skip("ACKCLOCK does not name the program of the command line")

    def run(*arguments: str | Path) -> str:
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return run
