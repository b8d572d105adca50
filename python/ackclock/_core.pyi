from os import PathLike
from random import Random
from typing import Any, ClassVar, Final, Literal, final

__version__: str
__build__: str

def command(arguments: list[str]) -> int: ...
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
    @staticmethod
    def from_arrow(data: Any) -> Table:
        """Takes Arrow data in one piece (``__arrow_c_stream__``), without a copy.

        Raises ValueError if it is in several pieces, or of other types than those of tables.
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

    def __new__(
        cls, name: str, text: str | None, overrides: list[tuple[str, str]], own: Own | None = None
    ) -> Scenario: ...
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
    @property
    def is_replay(self) -> bool:
        """Whether runs are fed with captures."""
    @property
    def expectations(self) -> int:
        """How many expectations there are."""
    def pack(self) -> tuple[str, str, bytes, list[tuple[str, str]], list[tuple[str, bytes]]]: ...
    @staticmethod
    def unpack(
        name: str,
        folder: str,
        text: bytes,
        overrides: list[tuple[str, str]],
        files: list[tuple[str, bytes]],
        own: Own | None = None,
    ) -> Scenario: ...
    @property
    def classes(self) -> tuple[_Listed, _Listed] | None: ...
    def places(self, only: str | None = None, shard: str | None = None) -> tuple[int, int]: ...
    def runs_at(self, start: int, stop: int, *, only: str | None = None, shard: str | None = None) -> list[int]: ...
    def plan(self, most: int, memory: int | None = None) -> tuple[int, str | None]: ...
    def failure(self, run: int, why: str) -> Lines: ...
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
    @staticmethod
    def join(parts: list[Lines], last: str | None = None) -> Lines: ...
    def pack(self) -> bytes: ...
    @staticmethod
    def unpack(data: bytes) -> Lines: ...
    def runs(self) -> list[int]: ...
    def __len__(self) -> int: ...
    def json(self, number: int) -> str: ...
    def text(self) -> str: ...
    def records(self, number: int) -> dict[str, bytes]: ...
    @property
    def failed(self) -> int: ...
    def table(self, part: str, of_runs: bool) -> Table: ...
    def part(self, part: str, parameters: Parameters) -> Table: ...

@final
class Parameters:
    def __new__(cls) -> Parameters: ...
    def see(self, lines: Lines) -> None: ...

@final
class Output:
    @staticmethod
    def open(
        scenario: Scenario,
        directory: PathLike[str],
        judge: Judge,
        *,
        only: str | None = None,
        shard: str | None = None,
        resume: bool = True,
        overwrite: bool = False,
    ) -> tuple[Output, int, str | None]: ...
    def add(self, lines: Lines) -> None: ...
    @property
    def last(self) -> str | None: ...
    def finish(self, last: str | None = None, partial: bool = False) -> None: ...
    def leave(self) -> None: ...

def manifest(directory: PathLike[str]) -> str: ...

@final
class Judge:
    def __new__(cls, scenario: Scenario) -> Judge: ...
    @staticmethod
    def measure(scenario: Scenario, lines: Lines) -> bytes: ...
    def add(self, data: bytes) -> None: ...
    def conclude(self, line: str) -> str: ...

@final
class Batch:
    @staticmethod
    def start(
        scenario: Scenario,
        *,
        only: str | None = None,
        shard: str | None = None,
        places: tuple[int, int] | None = None,
        threads: int | None = None,
        records: bool = False,
        most: int | None = None,
    ) -> Batch: ...
    def wait(self, seconds: float) -> bool: ...
    def reached(self) -> tuple[float, float]: ...
    def stop(self) -> None: ...
    def waiting(self) -> int: ...
    def take(self) -> Lines: ...
    def finish(self) -> tuple[Lines, list[str]]: ...

@final
class Interrupts:
    def __new__(cls) -> Interrupts: ...
    def seen(self) -> bool: ...

_Listed = list[tuple[str, Any, list[tuple[str, float, float, float]]]]

@final
class Own:
    def __new__(cls, controllers: _Listed, queues: _Listed) -> Own: ...

def shut_down() -> None: ...
@final
class Flight:
    """What the sender knows at the moment of a hook. Times are ns, sizes bytes."""

    @property
    def now(self) -> int:
        """Time since the start of the run."""
    @property
    def mss(self) -> int:
        """Payload of a full segment, above zero."""
    @property
    def in_flight(self) -> int:
        """Bytes in the network; at a signal, before anything is declared lost."""
    @property
    def cwnd_limited(self) -> bool:
        """The window limited what was sent since the last ACK; without it the window must not grow."""
    @property
    def snd_una(self) -> int:
        """Oldest unacknowledged byte of the stream."""
    @property
    def snd_nxt(self) -> int:
        """Next byte of the stream to be sent for the first time."""
    @property
    def srtt(self) -> int | None:
        """Smoothed RTT."""
    @property
    def latest_rtt(self) -> int | None:
        """The newest RTT sample."""
    @property
    def min_rtt(self) -> int | None:
        """The smallest RTT sample of the connection."""
    @property
    def after_timeout(self) -> bool:
        """A timeout happened and what was outstanding then is not all acknowledged yet."""
    @property
    def initial_window(self) -> int:
        """The host's initial window."""
    @property
    def paced(self) -> bool:
        """The endpoint paces, whoever asked for it."""
    @property
    def app_limited(self) -> bool:
        """The application has left the pipe unfilled; only where delivery rates are sampled."""

@final
class RateSample:
    """A delivery rate (draft-ietf-ccwg-bbr section 4.1.2)."""

    @property
    def total_delivered(self) -> int:
        """Bytes delivered in the connection's life, this ACK included."""
    @property
    def prior_delivered(self) -> int:
        """The same when the newest acknowledged segment was sent."""
    @property
    def delivered(self) -> int:
        """Bytes delivered since."""
    @property
    def interval(self) -> int | None:
        """In how many ns; None if the sample says nothing about the rate."""
    @property
    def app_limited(self) -> bool:
        """The application had left the pipe unfilled when that segment was sent."""
    @property
    def in_flight_when_sent(self) -> int:
        """Bytes in flight once that segment was sent."""
    @property
    def lost(self) -> int:
        """Bytes marked lost since that segment was sent."""

@final
class Ack:
    """An ACK that newly acknowledges data."""

    @property
    def acked(self) -> int:
        """Bytes newly acknowledged cumulatively."""
    @property
    def delivered(self) -> int:
        """Bytes newly known to have arrived: what growth is based on."""
    @property
    def rtt(self) -> int | None:
        """The RTT measured with this ACK, ns; None if it covers only retransmitted data."""
    @property
    def ece(self) -> bool:
        """It carries the ECN echo."""
    @property
    def ce(self) -> int:
        """Bytes newly reported to have arrived with CE."""
    @property
    def lost(self) -> int:
        """Bytes newly marked lost."""
    @property
    def rate(self) -> RateSample | None:
        """The delivery rate that it samples; only where a class asks for rates."""

@final
class Arrival:
    """An ACK as it was accepted, before any reaction to it."""

    @property
    def ack(self) -> int:
        """The first byte of the stream that it does not acknowledge."""
    @property
    def acked(self) -> int:
        """Bytes newly acknowledged cumulatively."""
    @property
    def delivered(self) -> int:
        """Bytes newly known to have arrived."""
    @property
    def sacked_to(self) -> int | None:
        """The end of the highest SACK block in it above what it acknowledges."""
    @property
    def duplicate(self) -> bool:
        """It is a duplicate ACK."""
    @property
    def in_recovery(self) -> bool:
        """The sender is in fast recovery or rebuilds after a timeout."""
    @property
    def echoed(self) -> int | None:
        """Time since the segment was sent whose timestamp it echoes, ns."""
    @property
    def rtt(self) -> int | None:
        """The RTT measured with this ACK, ns."""
    @property
    def ce(self) -> int:
        """Bytes newly reported to have arrived with CE."""
    @property
    def plain(self) -> bool:
        """It acknowledges something, and nothing else in it is new."""

@final
class Sent:
    """A segment that was sent."""

    @property
    def seq(self) -> int:
        """Its first byte in the stream."""
    @property
    def bytes(self) -> int:
        """Its payload."""

@final
class Lost:
    """A segment that was marked lost, with the state when it was last sent. Counts are bytes."""

    @property
    def seq(self) -> int:
        """Its first byte in the stream."""
    @property
    def bytes(self) -> int:
        """Its payload."""
    @property
    def total_delivered(self) -> int:
        """Delivered in the connection's life, the ACK in hand included."""
    @property
    def total_lost(self) -> int:
        """Marked lost in the connection's life, this segment included."""
    @property
    def prior_delivered(self) -> int:
        """Delivered until it was sent."""
    @property
    def prior_lost(self) -> int:
        """Marked lost until it was sent."""
    @property
    def in_flight_when_sent(self) -> int:
        """In flight once it was sent."""
    @property
    def app_limited(self) -> bool:
        """The application had left the pipe unfilled."""
    @property
    def selective_acks(self) -> bool:
        """SACK is in use."""

@final
class Subflow:
    """One subflow of a connection of Multipath TCP."""

    @property
    def cwnd(self) -> int:
        """Its congestion window."""
    @property
    def ssthresh(self) -> int:
        """Its slow start threshold."""
    @property
    def mss(self) -> int:
        """Payload of a full segment."""
    @property
    def srtt(self) -> int | None:
        """Its smoothed RTT, ns; without one it does not count."""
    @property
    def min_rtt(self) -> int | None:
        """Its smallest RTT sample, ns."""

@final
class Signal:
    """Why the window has to be reduced, or restored."""

    @property
    def kind(self) -> Literal["loss", "ecn", "timeout", "spurious", "resume"]:
        """A loss or a mark was noticed, once per episode; a timeout; the last reduction was not
        necessary; or sending resumes at ``cwnd`` after missing data arrived late (RFC 4653)."""
    @property
    def repeated(self) -> bool:
        """Not the first timeout for this data: the threshold then stays."""
    @property
    def kept(self) -> int:
        """Bytes that a timeout does not declare lost."""
    @property
    def cwnd(self) -> int | None:
        """A limit that prevents a burst; only of ``resume``."""
    @property
    def ssthresh(self) -> int | None:
        """What was outstanding before; only of ``resume``."""

@final
class Verdict:
    """What a controller did with an ACK."""

    CONTINUE: Final[Verdict]
    """The window grew or stayed; None means the same."""
    REDUCED: Final[Verdict]
    """It backed off by itself: congestion recovery begins, in which the endpoint lets the window come down."""
    TRIMMED: Final[Verdict]
    """It made the window smaller, and that is all."""

class CongestionControl:
    """NewReno, for classes that replace some of its hooks.

    A subclass overrides hooks, sets ``cwnd`` and ``ssthresh``, and calls ``super()`` for what NewReno
    does. Each connection has an instance of its own, made without arguments; parameters
    (:func:`ackclock.parameter`) are attributes before ``__init__`` is called. What is not overridden
    costs nothing: it never leaves Rust, and what only the hook would need is not measured.

    Times are whole ns, sizes whole bytes of payload. An exception ends the run.
    """

    delivery_rate: ClassVar[bool]
    """Whether delivery rates are sampled (``Ack.rate``), also without ``on_lost``. Default: False."""
    whole_control: ClassVar[bool]
    """Whether nothing else reduces the window in recovery, and ``on_ack`` is called for every ACK that
    delivers something or proves a loss, in every state. Default: False."""
    ecn: ClassVar[Literal["data", "all", "scalable"]]
    """Which packets are sent as ECN-capable, on a connection that has agreed on ECN: new data with
    ECT(0), everything with ECT(0), or everything with ECT(1). Default: ``"data"``."""
    cwnd: int
    """The congestion window, 1 to 2**48; a hook may not leave less than a segment."""
    ssthresh: int
    """The slow start threshold; 2**64 - 1 before the first congestion."""

    def __init__(self) -> None: ...
    @property
    def in_slow_start(self) -> bool:
        """Whether the window is below the threshold."""
    @property
    def random(self) -> Random:
        """Random numbers of this connection alone, which follow from the seed of the run."""
    def on_established(self, flight: Flight) -> None:
        """The handshake is complete: sets the initial window."""
    def take_over(self, cwnd: int, ssthresh: int) -> None:
        """Sets the window from outside: this one replaces another on an open connection, or the
        endpoint limits a window that was not used."""
    def on_ack(self, flight: Flight, ack: Ack) -> Verdict | None:
        """Data was newly acknowledged outside fast recovery. NewReno gives ``Verdict.CONTINUE``."""
    def on_sample(self, flight: Flight, rtt: int, cwnd: int) -> None:
        """The RTT sample of an ACK, ns, and the window in force, before the ACK is judged, in every
        state: on hosts that tell of samples so, as Linux does."""
    def on_signal(self, flight: Flight, signal: Signal) -> None:
        """Congestion was detected, or a reduction is undone."""
    def on_recovery_end(self, flight: Flight) -> None:
        """Recovery is over."""
    def on_idle_restart(self, flight: Flight) -> None:
        """Sending resumes after an idle time of more than one RTO."""
    def on_arrival(self, flight: Flight, arrival: Arrival) -> None:
        """An ACK was accepted, whatever it acknowledges, in every state."""
    def on_rtt_sample(self, flight: Flight) -> None:
        """A round-trip time was measured; ``flight.latest_rtt`` is the sample."""
    def on_round(self, flight: Flight, round: int) -> None:
        """A round trip has begun: data sent after the previous one's start is acknowledged."""
    def on_ecn(self, feedback: str) -> None:
        """The handshake has settled how marks are reported: ``none``, ``classic``, ``dctcp`` or ``accurate``."""
    def on_lost(self, flight: Flight, lost: Lost) -> None:
        """A segment was marked lost."""
    def on_sent(self, flight: Flight, sent: Sent) -> None:
        """A segment with data was sent; ``flight`` is the state before it."""
    def pacing_rate(self, flight: Flight) -> int | None:
        """The rate at which to pace, bit/s, from the handshake on at all times; None does not pace."""
    def couple(self, own: int, subflows: list[Subflow]) -> None:
        """The subflows of a connection of Multipath TCP, itself at ``own``: before each ACK and signal."""

@final
class Controller:
    """A built-in controller with the hooks of :class:`CongestionControl`; made by :func:`ackclock.cc`."""

    @staticmethod
    def of_scenario(scenario: Scenario, seed: int) -> Controller: ...
    @property
    def name(self) -> str:
        """Its name in scenarios."""
    @property
    def cwnd(self) -> int:
        """Its window."""
    @property
    def ssthresh(self) -> int:
        """Its threshold."""
    def take_over(self, cwnd: int, ssthresh: int) -> None: ...
    def on_established(self, flight: Flight) -> None: ...
    def on_ack(self, flight: Flight, ack: Ack) -> Verdict: ...
    def on_sample(self, flight: Flight, rtt: int, cwnd: int) -> None: ...
    def on_signal(self, flight: Flight, signal: Signal) -> None: ...
    def on_recovery_end(self, flight: Flight) -> None: ...
    def on_idle_restart(self, flight: Flight) -> None: ...
    def on_arrival(self, flight: Flight, arrival: Arrival) -> None: ...
    def on_rtt_sample(self, flight: Flight) -> None: ...
    def on_round(self, flight: Flight, round: int) -> None: ...
    def on_ecn(self, feedback: str) -> None: ...
    def on_lost(self, flight: Flight, lost: Lost) -> None: ...
    def on_sent(self, flight: Flight, sent: Sent) -> None: ...
    def pacing_rate(self, flight: Flight) -> int | None: ...
    def couple(self, own: int, subflows: list[Subflow]) -> None: ...

@final
class Packet:
    """A packet that a queue is offered."""

    @property
    def number(self) -> int:
        """Which packet of this queue it is, from 0."""
    @property
    def bytes(self) -> int:
        """Its length with the link's framing."""
    @property
    def ecn(self) -> Literal["not-ect", "ect0", "ect1", "ce"]:
        """Its codepoint."""
    @property
    def flow(self) -> int:
        """A hash of its flow, the same for all its packets."""
    @property
    def hosts(self) -> tuple[int, int]:
        """Hashes of the sending and of the receiving host."""
    @property
    def dscp(self) -> int:
        """Its differentiated services codepoint."""
    @property
    def is_pure_ack(self) -> bool:
        """It acknowledges, and carries neither payload nor SYN, FIN or RST."""
    @property
    def arrived_at(self) -> int:
        """When it arrived, ns since the start of the run."""
    def mark(self) -> bool:
        """Marks it CE; False, and nothing done, if it cannot carry a mark."""

@final
class NotBefore:
    """Packets wait, but none may leave before this time, which is later than now; for ``dequeue``."""

    def __new__(cls, at: int) -> NotBefore: ...
    @property
    def at(self) -> int:
        """The time, ns since the start of the run."""

class QueueDisc:
    """Drop-tail, for classes that replace some of its hooks.

    A subclass overrides ``enqueue``, ``dequeue`` or both. Each packet offered ends exactly once:
    ``dequeue`` gives it out, or :meth:`drop` discards it, in whichever hook. A class that loses a
    packet, or gives one out twice, ends the run with an error. Each direction of a link has an
    instance of its own, made without arguments; parameters (:func:`ackclock.parameter`) are attributes
    before ``__init__`` is called.

    Times are whole ns since the start of the run, sizes whole bytes. An exception ends the run.
    """

    limit: float
    """The most packets that the base class takes in. Default: 1000; a parameter of this name replaces it."""

    def __init__(self) -> None: ...
    def __len__(self) -> int:
        """Packets in the base class's own queue."""
    @property
    def bytes(self) -> int:
        """Bytes in the base class's own queue."""
    def first(self) -> Packet | None:
        """The oldest packet in the base class's own queue, which stays there."""
    def take(self) -> Packet | None:
        """Takes the oldest packet out of the base class's own queue, to give it out or to drop it."""
    @property
    def random(self) -> Random:
        """Random numbers of this queue alone, which follow from the seed of the run."""
    def drop(
        self,
        packet: Packet,
        reason: Literal["limit", "early", "delay", "memory", "bucket", "penalty", "ack"] = "early",
    ) -> None:
        """Discards a packet, the one that arrives or one that has waited. ``reason`` is where summaries count it."""
    def enqueue(self, now: int, packet: Packet) -> None:
        """A packet arrives. The base class appends it to its own queue, or drops it at the limit."""
    def dequeue(self, now: int) -> Packet | NotBefore | None:
        """The next packet to transmit; None only if nothing waits. The base class gives the oldest."""
    def idle(self, now: int) -> None:
        """The transmitter is free and nothing waits."""
    def on_change(self, now: int) -> None:
        """Parameters have changed in the middle of a run, by a ``schedule``; only with this hook they may."""
    def peek(self) -> Packet | None:
        """The packet considered first for the next ``dequeue``: Wi-Fi links ask. Unless it is overridden,
        they are given the oldest."""
    def probe(self) -> dict[str, Any]:
        """Variables of the law, for ``queue.csv``: any of ``probability``, ``average`` (bytes), ``delay``
        (ns) and ``dropping``."""

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
        own: Own | None = None,
    ) -> Environments: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...
    @property
    def widths(self) -> list[tuple[int, int]]: ...
    @property
    def network(self) -> list[str]: ...
    @property
    def flows(self) -> list[str]: ...
    @property
    def paths(self) -> list[str]: ...
    @property
    def loses_records(self) -> bool: ...
    def buffer(self, name: str) -> bytearray: ...
    def reset(self, seeds: list[int | None], chosen: list[bool]) -> None: ...
    def step(self) -> tuple[float, bool, bool]: ...
    def measures(self, number: int, learner: int) -> list[float]: ...
    def drawn(self, number: int) -> tuple[list[str], int]: ...
    def snapshot(self, number: int) -> tuple[int, int, bool, bytes]: ...
    def restore(self, number: int, to: tuple[int, int, bool, bytes]) -> None: ...
    def result(self, number: int) -> Lines: ...

@final
class LearnedPolicy:
    def __new__(cls, text: str) -> LearnedPolicy: ...
    @property
    def width(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    def act(self, observations: bytes) -> list[float]: ...

def features() -> list[tuple[str, str]]: ...
def figures() -> str: ...
def headings(list: str, paths: list[str]) -> list[str]: ...
def shown(list: str, path: str, value: float) -> str: ...
