//! `ackclock pattern`: the bytes that ackclock's endpoints send and expect, for programs on
//! external hosts.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use ackclock_packet::pattern;
use ackclock_run::status::MISSED;
use ackclock_units::{Size, parse_size};
use anyhow::{Context, bail};
use socket2::{Domain, Protocol, Socket, Type};

use crate::args::PatternArgs;
use crate::console::{print, say};

/// Bytes that are made, or read, at a time: more than a pipe holds, less than a cache.
const CHUNK: usize = 256 << 10;

/// Sends or checks; the status to end with.
pub(crate) fn run(args: &PatternArgs) -> anyhow::Result<u8> {
    let bytes = args.bytes.as_deref().map(length).transpose()?;
    // A listener stays: subflows come to it as well.
    let (stream, _listener) = connection(args)?;
    match (stream, bytes) {
        (None, _) if args.check => Ok(report(&check(io::stdin().lock(), "standard input")?, bytes)?),
        (Some(stream), _) if args.check => Ok(report(&check(stream, "the connection")?, bytes)?),
        (None, Some(bytes)) => Ok(match sent(send(&mut io::stdout().lock(), bytes), bytes, "standard output")? {
            true => 0,
            false => MISSED,
        }),
        (Some(mut stream), Some(bytes)) => {
            let there = sent(send(&mut stream, bytes), bytes, "the connection")? && taken(&mut stream)?;
            Ok(if there { 0 } else { MISSED })
        }
        (_, None) => bail!("--bytes is missing: how many bytes to send"),
    }
}

fn length(text: &str) -> anyhow::Result<u64> {
    match parse_size(text).with_context(|| format!("--bytes {text}"))? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Packets(_) => bail!("--bytes {text}: a stream has no packets; expected bytes, such as \"100MB\""),
    }
}

/// The connection that was asked for, and what has accepted it; `None` is standard input and
/// output.
fn connection(args: &PatternArgs) -> anyhow::Result<(Option<TcpStream>, Option<TcpListener>)> {
    let address = |text: &str, flag| {
        text.parse::<SocketAddr>()
            .with_context(|| format!("{flag} {text}: expected an address with a port, such as 10.0.0.9:5001"))
    };
    if let Some(text) = &args.connect {
        let to = address(text, "--connect")?;
        let connected = || -> io::Result<TcpStream> {
            let socket = socket(to, args.mptcp)?;
            socket.connect(&to.into())?;
            Ok(socket.into())
        };
        return Ok((Some(connected().with_context(|| format!("cannot connect to {to}"))?), None));
    }
    let Some(text) = &args.listen else {
        if args.mptcp {
            bail!("--mptcp without a connection; expected --connect or --listen");
        }
        return Ok((None, None));
    };
    let at = address(text, "--listen")?;
    let bound = || -> io::Result<TcpListener> {
        let socket = socket(at, args.mptcp)?;
        socket.set_reuse_address(true)?;
        socket.bind(&at.into())?;
        socket.listen(1)?;
        Ok(socket.into())
    };
    let listener = bound().with_context(|| format!("cannot listen at {at}"))?;
    say(&format!("listening at {}", listener.local_addr()?));
    let (stream, _) = listener.accept().context("cannot accept a connection")?;
    Ok((Some(stream), Some(listener)))
}

/// A socket of TCP, or of Multipath TCP where the kernel has it.
fn socket(address: SocketAddr, mptcp: bool) -> io::Result<Socket> {
    let protocol = match mptcp {
        false => Protocol::TCP,
        #[cfg(target_os = "linux")]
        true => Protocol::MPTCP,
        #[cfg(not(target_os = "linux"))]
        true => return Err(io::Error::new(io::ErrorKind::Unsupported, "Multipath TCP requires Linux")),
    };
    Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))
}

/// Writes so many bytes; on failure, how many the writer had taken, at least.
fn send(to: &mut impl Write, bytes: u64) -> Result<(), (u64, io::Error)> {
    let mut buffer = vec![0; CHUNK];
    let mut done = 0;
    while done < bytes {
        let len = (bytes - done).min(CHUNK as u64) as usize;
        pattern::fill(done, &mut buffer[..len]);
        to.write_all(&buffer[..len]).map_err(|error| (done, error))?;
        done += len as u64;
    }
    to.flush().map_err(|error| (done, error))
}

/// Returns `true` if all was written. A reader that has left is no defect of the input.
fn sent(ended: Result<(), (u64, io::Error)>, bytes: u64, to: &str) -> anyhow::Result<bool> {
    match ended {
        Ok(()) => Ok(true),
        Err((done, error)) if has_left(&error) => {
            say(&format!("error: the reader of {to} has left after at least {done} of {bytes} bytes"));
            Ok(false)
        }
        Err((_, error)) => Err(error).with_context(|| format!("cannot write to {to}")),
    }
}

fn has_left(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Closes this direction and waits until the other end has closed its own: by then it has received
/// everything.
fn taken(stream: &mut TcpStream) -> anyhow::Result<bool> {
    let ended = stream.shutdown(Shutdown::Write).and_then(|()| io::copy(stream, &mut io::sink()));
    match ended {
        Ok(_) => Ok(true),
        Err(error) if has_left(&error) || error.kind() == io::ErrorKind::NotConnected => {
            say("error: the connection was reset before the other end had everything");
            Ok(false)
        }
        Err(error) => Err(error).context("cannot close the connection"),
    }
}

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
struct Checked {
    bytes: u64,
    /// The offset of the first byte that is not the pattern's.
    wrong: Option<u64>,
    /// The connection was reset.
    reset: bool,
}

/// Bytes read past a difference, so that the writer is not disturbed. A stream may have no end.
const PAST_A_DIFFERENCE: u64 = 1 << 30;

/// Reads to the end, or far past the first difference.
fn check(mut from: impl Read, name: &str) -> anyhow::Result<Checked> {
    let mut buffer = vec![0; CHUNK];
    let mut checked = Checked { bytes: 0, wrong: None, reset: false };
    loop {
        let len = match from.read(&mut buffer) {
            Ok(0) => return Ok(checked),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                checked.reset = true;
                return Ok(checked);
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
        };
        if checked.wrong.is_none() {
            checked.wrong = pattern::first_mismatch(checked.bytes, &buffer[..len]);
        }
        checked.bytes += len as u64;
        if checked.wrong.is_some_and(|wrong| checked.bytes - wrong > PAST_A_DIFFERENCE) {
            return Ok(checked);
        }
    }
}

fn report(checked: &Checked, expected: Option<u64>) -> anyhow::Result<u8> {
    let Checked { bytes, wrong, reset } = *checked;
    let mut problems = Vec::new();
    if let Some(offset) = wrong {
        problems.push(format!("byte {offset} is the first that is not the pattern's"));
    }
    if let Some(expected) = expected.filter(|&expected| expected != bytes) {
        problems.push(format!("expected {expected} bytes"));
    }
    if reset {
        problems.push("the connection was reset".to_owned());
    }
    if problems.is_empty() {
        let _ = print(&format!("{bytes} bytes, all of them the pattern's\n"))?;
        return Ok(0);
    }
    say(&format!("error: received {bytes} bytes: {}", problems.join("; ")));
    Ok(MISSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_is_checked() {
        // Whole chunks, and a part of one.
        for bytes in [0, 1, CHUNK as u64, 3 * CHUNK as u64 + 5] {
            let mut sent = Vec::new();
            send(&mut sent, bytes).expect("memory takes it");
            assert_eq!(sent.len() as u64, bytes);
            assert_eq!(check(&sent[..], "").unwrap(), Checked { bytes, wrong: None, reset: false });
        }
    }

    #[test]
    fn a_wrong_stream_without_an_end_is_left() {
        let checked = check(io::repeat(0x5a), "").unwrap();
        assert!(checked.wrong.is_some_and(|wrong| wrong < 16), "{checked:?}");
    }

    #[test]
    fn the_first_wrong_byte_is_told_and_the_rest_is_still_read() {
        let mut data = Vec::new();
        send(&mut data, 2 * CHUNK as u64).expect("memory takes it");
        data[CHUNK + 9] ^= 0x40;
        data[CHUNK + 70] ^= 0x01;
        let checked = check(&data[..], "").unwrap();
        assert_eq!(checked, Checked { bytes: 2 * CHUNK as u64, wrong: Some(CHUNK as u64 + 9), reset: false });
    }
}
