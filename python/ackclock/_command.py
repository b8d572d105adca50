"""The command ``ackclock``, which a wheel brings along."""

import os
import signal
import sys

from ackclock import _core


def main() -> None:
    """Run the command line and exit with its status."""
    # Programs of a live run find the command by this variable.
    os.environ["ACKCLOCK"] = os.path.abspath(sys.argv[0])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_core.command(sys.argv))
