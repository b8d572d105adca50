//! `ackclock ctl`: a request to a run that goes on.

use std::io::{BufRead, BufReader, Write};

use ackclock_run::status::{BAD_INPUT, RUN_FAILED};
use ackclock_watch::control::{Stream, connect, says_over};
use anyhow::{Context, bail};

use crate::args::ctl::CtlArgs;
use crate::console::{print, say};

/// Asks; the status to end with.
pub(crate) fn run(args: &CtlArgs) -> anyhow::Result<u8> {
    let request = args.request.join(" ");
    if request.contains(['\n', '\r']) {
        bail!("a request is one line");
    }
    let unheard = || format!("nobody listens at {}", args.socket.display());
    let mut stream: Stream = connect(&args.socket).with_context(unheard)?;
    let gone = || {
        say("error: the run ended before it answered");
        Ok(RUN_FAILED)
    };
    // A server that refuses to listen says so without having read.
    let _ = stream.write_all(format!("{request}\n").as_bytes());
    let mut lines = BufReader::new(stream).lines();
    let Some(Ok(first)) = lines.next() else { return gone() };
    if let Some(error) = first.strip_prefix("error ") {
        say(&format!("error: {error}"));
        return Ok(if says_over(&first) { RUN_FAILED } else { BAD_INPUT });
    }
    if let Some(done) = first.strip_prefix("ok ") {
        let _ = print(&format!("{done}\n"))?;
        return Ok(0);
    }
    // A list, which an empty line ends.
    let mut line = first;
    while !line.is_empty() {
        if print(&format!("{line}\n"))?.is_break() {
            return Ok(0);
        }
        let Some(Ok(next)) = lines.next() else { return gone() };
        line = next;
    }
    Ok(0)
}
