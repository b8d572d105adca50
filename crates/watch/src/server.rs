//! A server for metrics: HTTP/1.1, one request for each connection, on loopback alone.
//!
//! It is for Prometheus and for curl, and strict. A client that sends nothing, or reads nothing,
//! has its connection for a few seconds, of which there are a few.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;

use super::feed::Watch;
use super::metrics;

/// Interval at which the thread looks for clients, and for its end.
const LOOK: Duration = Duration::from_millis(20);

/// Looks until it takes in what the run has handed over, though nobody asks.
const KEEP_UP: u32 = 25;

/// Clients at the same time.
const CLIENTS: usize = 8;

/// Bytes of a request up to its empty line.
const LONGEST: usize = 8 << 10;

/// A request has to be there after so many reads, each of which waits this long.
const READS: usize = 16;
const PATIENCE: Duration = Duration::from_millis(500);

/// Number of writes within which the answer, which may be long, has to leave.
const WRITES: usize = 256;

/// Where to listen: an address of this machine's loopback, and a port; 0 is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(SocketAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        let address = match local {
            Some(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
            None => text.parse().map_err(|_| "not an address and a port, such as 127.0.0.1:9100".to_owned())?,
        };
        if address.ip().is_loopback() {
            return Ok(Address(address));
        }
        Err(format!("{} is not an address of the loopback interface, such as 127.0.0.1 or [::1]", address.ip()))
    }
}

/// An address at which nobody answers yet.
#[derive(Debug)]
pub struct BoundListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl BoundListener {
    /// Takes an address.
    ///
    /// # Errors
    /// It cannot be had.
    pub fn at(address: Address) -> anyhow::Result<BoundListener> {
        let Address(address) = address;
        let listener = TcpListener::bind(address).with_context(|| format!("--metrics: cannot listen on {address}"))?;
        listener.set_nonblocking(true).context("--metrics")?;
        let address = listener.local_addr().context("--metrics")?;
        Ok(BoundListener { listener, address })
    }
}

/// A server; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to answer with what is known of a run.
    ///
    /// # Errors
    /// There is no further thread.
    pub(super) fn start(bound: BoundListener, watch: Arc<Watch>) -> anyhow::Result<Server> {
        let BoundListener { listener, address } = bound;
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let thread = thread::Builder::new().name("metrics".into()).spawn(move || serve(&listener, &watch, &until));
        Ok(Server { address, over, thread: Some(thread.context("--metrics")?) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread does not wait for clients.
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, watch: &Arc<Watch>, over: &AtomicBool) {
    let clients = Arc::new(AtomicUsize::new(0));
    let (mut looks, mut refused): (u32, VecDeque<TcpStream>) = (0, VecDeque::new());
    while !over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) if clients.load(Ordering::Relaxed) < CLIENTS => {
                clients.fetch_add(1, Ordering::Relaxed);
                let (watch, here) = (watch.clone(), clients.clone());
                let begun = thread::Builder::new().spawn(move || {
                    // An error has been told to the client, unless it has left.
                    let _ = answer(&stream, &watch);
                    here.fetch_sub(1, Ordering::Relaxed);
                });
                if begun.is_err() {
                    clients.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Ok((stream, _)) => {
                // A socket that is closed before its input was read takes the answer with it.
                if refuse(&stream).is_ok() {
                    refused.push_back(stream);
                }
                if refused.len() > CLIENTS {
                    refused.pop_front().iter().for_each(forget);
                }
            }
            Err(_) => {
                // Nobody, or nobody whom it could have; either may change.
                looks = looks.wrapping_add(1);
                if looks.is_multiple_of(KEEP_UP) {
                    drop(watch.board());
                    refused.drain(..).for_each(|stream| forget(&stream));
                }
                thread::sleep(LOOK);
            }
        }
    }
}

/// There are enough clients. The answer fits into the socket's buffer.
fn refuse(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.write_all(&response("503 Service Unavailable", "text/plain", "too many clients\n", true))?;
    stream.shutdown(Shutdown::Write)
}

/// Reads what a client that was refused has sent by now.
fn forget(mut stream: &TcpStream) {
    let _ = stream.read(&mut [0; LONGEST]);
}

fn answer(stream: &TcpStream, watch: &Watch) -> io::Result<()> {
    // The stream may have the listener's settings.
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let response = match read(stream)? {
        Ok(head) => respond(&head, || metrics::text(&watch.board())),
        Err(status) => response(status, "text/plain", &format!("{status}\n"), true),
    };
    write(stream, &response)?;
    // A request that was not read to its end would have the answer dropped with it.
    stream.shutdown(Shutdown::Write)?;
    let mut rest = [0; 1024];
    for _ in 0..READS {
        if (&*stream).read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

/// The head of a request; or the status that says why there is none.
fn read(mut stream: &TcpStream) -> io::Result<Result<Vec<u8>, &'static str>> {
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    for _ in 0..READS {
        let read = match stream.read(&mut part) {
            Ok(0) => return Ok(Err("400 Bad Request")),
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        head.extend_from_slice(&part[..read]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(if end > LONGEST { Err("431 Request Header Fields Too Large") } else { Ok(head) });
        }
        if head.len() > LONGEST {
            return Ok(Err("431 Request Header Fields Too Large"));
        }
    }
    Ok(Err("408 Request Timeout"))
}

fn write(mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    for _ in 0..WRITES {
        match stream.write(bytes) {
            _ if bytes.is_empty() => break,
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if bytes.is_empty() { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
}

/// The answer to a request with this head (RFC 9112 s3).
fn respond(head: &[u8], metrics: impl FnOnce() -> String) -> Vec<u8> {
    let bad = |why: &str| response("400 Bad Request", "text/plain", &format!("{why}\n"), true);
    let Ok(head) = str::from_utf8(head) else { return bad("the request is not text") };
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return bad("the first line is not METHOD TARGET VERSION");
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return response("505 HTTP Version Not Supported", "text/plain", "HTTP/1.1 and HTTP/1.0 are\n", true);
    }
    let is_field =
        |line: &str| line.split_once(':').is_some_and(|(name, _)| !name.is_empty() && !name.contains([' ', '\t']));
    if !lines.all(is_field) {
        return bad("a header field is not NAME: VALUE");
    }
    if !matches!(method, "GET" | "HEAD") {
        return response("405 Method Not Allowed", "text/plain", "GET and HEAD are allowed\n", true);
    }
    let has_body = method == "GET";
    let path = target.split('?').next().unwrap_or_default();
    match path {
        "/metrics" => response("200 OK", metrics::CONTENT_TYPE, &metrics(), has_body),
        "/" => response("200 OK", "text/plain; charset=utf-8", "ackclock: metrics are at /metrics\n", has_body),
        _ => response("404 Not Found", "text/plain", "metrics are at /metrics\n", has_body),
    }
}

fn response(status: &str, content_type: &str, body: &str, has_body: bool) -> Vec<u8> {
    let length = body.len();
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let mut response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    if has_body {
        response.push_str(body);
    }
    response.into_bytes()
}

#[cfg(test)]
mod tests;
