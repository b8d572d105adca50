//! Where there are no Unix sockets.

use std::io;
use std::path::Path;

use anyhow::bail;

use super::Controls;

/// A connection that there cannot be.
pub type Stream = std::net::TcpStream;

/// # Errors
/// Always.
pub fn connect(_: &Path) -> io::Result<Stream> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is none.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// # Errors
    /// Always.
    pub fn listen(_: &Path, _: &Controls) -> anyhow::Result<Server> {
        bail!("--control requires a system with Unix sockets")
    }
}
