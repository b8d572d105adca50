"""The JSON schema for editors accepts what the parser accepts, and marks mistakes where they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from conftest import ROOT

tomllib = pytest.importorskip("tomllib")

BASE = 'schema = 1\n[run]\nduration = "1s"\n[links.wire]\nrate = "1mbit"\n'
FLOW = '[[flows]]\nid = "f"\npath = ["wire"]\n'


@pytest.fixture(scope="module")
def validator(command_line: Callable[..., str]) -> Draft7Validator:
    schema = json.loads(command_line("schema"))
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def errors(validator: Draft7Validator, text: str) -> list[str]:
    """The errors of a scenario, each with its place."""
    document: Any = tomllib.loads(text)
    return [f"{error.message} at /{'/'.join(map(str, error.path))}" for error in validator.iter_errors(document)]


def test_every_scenario_is_valid(validator: Draft7Validator, command_line: Callable[..., str], tmp_path: Path) -> None:
    files = sorted(ROOT.glob("scenarios/*/*.toml"))
    assert len(files) > 50
    for file in files:
        assert errors(validator, file.read_text()) == [], file
    small = tmp_path / "small.toml"
    small.write_text(BASE + FLOW)
    for text in [command_line("new"), command_line("--scenario", small, "--show-config")]:
        assert errors(validator, text) == []


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        (f'{BASE}dalay = "1ms"\n{FLOW}', "dalay"),
        (f"{BASE}delay = 20\n{FLOW}", "/links/wire/delay"),
        (f'{BASE}delay = "soon"\n{FLOW}', "/links/wire/delay"),
        (f'{BASE}queue = "pye"\n{FLOW}', "/links/wire/queue"),
        (f'{BASE}queue = {{ kind = "pie", taget = "20ms" }}\n{FLOW}', "/links/wire/queue"),
        (f'{BASE}loss = {{ kind = "iid", probability = 1.5 }}\n{FLOW}', "/links/wire/loss"),
        (f'{BASE}{FLOW}cc = "cubik"\n', "/flows/0/cc"),
        (f"{BASE}{FLOW}count = 0\n", "/flows/0/count"),
        (f'{BASE}{FLOW}sack = "yes"\n', "/flows/0/sack"),
        (f'{BASE}{FLOW}[sweep]\nrepeat = "3"\n', "/sweep/repeat"),
        (f'{BASE}{FLOW}[record]\nserie = "1s"\n', "serie"),
        (f"{BASE}{FLOW}[recrod]\ntcp = true\n", "recrod"),
        ('schema = 1\n[run]\nduration = "1s"\n', "links"),
    ],
)
def test_mistakes_are_marked(validator: Draft7Validator, wrong: str, part: str) -> None:
    assert any(part in error for error in errors(validator, wrong))


def test_a_scenario_without_mistakes_has_no_marks(validator: Draft7Validator) -> None:
    assert errors(validator, BASE + FLOW) == []
