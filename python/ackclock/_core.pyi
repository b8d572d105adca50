from typing import Any, final

__version__: str

@final
class Table:
    """Columns of equal length, in Arrow's format.

    pandas, Polars, pyarrow and DuckDB take it as it is (``__arrow_c_stream__``).
    """

    @staticmethod
    def from_csv(text: bytes) -> Table:
        """Reads CSV text with a header; empty cells are missing values.

        Raises ValueError if rows are of different lengths or the text is not UTF-8.
        """
    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
    @property
    def num_rows(self) -> int:
        """The number of rows."""
    def __len__(self) -> int: ...
    def column(self, name: str) -> list[Any]:
        """The values of a column; those that are missing are None. Raises KeyError without it."""
    def to_dict(self) -> dict[str, list[Any]]:
        """All columns as lists."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Scenario:
    """A scenario that has been read and checked, with overrides applied."""

    def __new__(cls, name: str, text: str | None, overrides: list[tuple[str, str]]) -> Scenario: ...
    @property
    def title(self) -> str:
        """The title."""
    @property
    def runs(self) -> int:
        """How many runs there are, at most if the sweep is adaptive."""
    @property
    def repeat(self) -> int:
        """How often each point is run, at most."""
    @property
    def is_sweep(self) -> bool:
        """Whether there is a ``[sweep]``."""
    @property
    def is_adaptive(self) -> bool:
        """Whether repetitions end when enough is known."""
    @property
    def is_live(self) -> bool:
        """Whether runs need the machine's clock."""
    @property
    def axes(self) -> list[str]:
        """The paths of the sweep's axes."""
    @property
    def notes(self) -> list[str]:
        """What the clock leaves out of what the file says, in sentences."""
    def params(self, run: int) -> str:
        """The parameters of a run as JSON. Raises IndexError without such a run."""
    def resolved(self) -> str:
        """As TOML, with overrides applied and defaults filled in, as ``--show-config`` prints it."""

@final
class Lines:
    @staticmethod
    def from_text(text: str) -> Lines: ...
    @staticmethod
    def from_document(text: str) -> Lines: ...
    def __len__(self) -> int: ...
    def json(self, number: int) -> str: ...
    def text(self) -> str: ...
    def records(self, number: int) -> dict[str, bytes]: ...
    @property
    def failed(self) -> int: ...
    def table(self, part: str, of_runs: bool) -> Table: ...

@final
class Batch:
    @staticmethod
    def start(
        scenario: Scenario,
        *,
        only: str | None = None,
        shard: str | None = None,
        threads: int | None = None,
        records: bool = False,
    ) -> Batch: ...
    def wait(self, seconds: float) -> bool: ...
    def reached(self) -> tuple[float, float]: ...
    def stop(self) -> None: ...
    def finish(self) -> tuple[Lines, list[str]]: ...

@final
class Interrupts:
    def __new__(cls) -> Interrupts: ...
    def seen(self) -> bool: ...

@final
class Environments:
    def __new__(
        cls,
        name: str,
        text: str,
        folder: str,
        overrides: list[tuple[str, str]],
        settings: str,
        count: int,
        threads: int,
        autoreset: str,
        keep_results: bool,
    ) -> Environments: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def flows(self) -> list[str]: ...
    @property
    def paths(self) -> list[str]: ...
    def buffer(self, name: str) -> bytearray: ...
    def reset(self, seeds: list[int | None], chosen: list[bool]) -> None: ...
    def step(self) -> tuple[float, bool, bool]: ...
    def measures(self, number: int, learner: int) -> list[float]: ...
    def drawn(self, number: int) -> tuple[list[str], int]: ...
    def result(self, number: int) -> Lines: ...

@final
class LearnedPolicy:
    def __new__(cls, text: str) -> LearnedPolicy: ...
    @property
    def width(self) -> int: ...
    def act(self, observations: bytes) -> list[float]: ...

def features() -> list[tuple[str, str]]: ...
