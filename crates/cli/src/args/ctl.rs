//! The command line of `ackclock ctl`.

use std::path::PathBuf;

/// Changes a running scenario through its control socket (--control).
///
/// `set KEY=VALUE...` sets keys of links, all of them at the same time or none:
/// links.NAME.rate, .delay, .jitter, .loss, .up, .drop, .until (the end of a ramp), .queue (another
/// discipline) and .queue.PARAMETER for both directions, links.NAME.forward.KEY and
/// links.NAME.reverse.KEY for one. `get KEY` prints a
/// value, `list` all keys with their values, `status` the time of the run. `stop` ends the run as
/// Ctrl-C does. On the virtual clock, `pause`, `resume` and `speed FACTOR` set its pace.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 2 when the request was wrong or nobody listens; 3 when the run is over.",
    after_long_help = "Exit status:\n  \
        0  the request succeeded\n  \
        2  the request was wrong, and nothing was changed; or nobody listens at SOCKET\n  \
        3  the run is over, or ended before it answered\n\n\
        Examples:\n  \
        ackclock FILE --control run.sock --speed 1 &\n  \
        ackclock ctl run.sock list\n  \
        ackclock ctl run.sock set links.bottleneck.rate=5mbit links.bottleneck.delay=40ms\n  \
        ackclock ctl run.sock set links.bottleneck.forward.queue.target=5ms\n  \
        ackclock ctl run.sock set links.bottleneck.queue=fq_codel links.bottleneck.queue.limit=1000p\n  \
        ackclock ctl run.sock speed 10"
)]
pub(crate) struct CtlArgs {
    /// The socket of the run
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,

    /// The request: set, get, list, status, pause, resume, speed or stop
    #[arg(value_name = "REQUEST", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) request: Vec<String>,
}
