//! The socket of `--control`: a Unix stream socket that only its user may use, for as long as the
//! run goes on.
//!
//! Each connection has a thread, and none of them touches the run: a client that says nothing, or
//! does not read its answers, is in nobody's way.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use super::Controls;
use super::protocol::{answer, is_stop};

/// A connection.
pub type Stream = UnixStream;

/// Connects to the socket of a run.
pub fn connect(path: &Path) -> io::Result<Stream> {
    UnixStream::connect(path)
}

/// The most connections at a time.
const CONNECTIONS: usize = 16;

/// The longest request, in bytes.
const LINE: usize = 64 << 10;

/// Time for which a client may say nothing in the middle of a request, and take to read an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A socket that is listened on; dropped, it is gone.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    /// The identity of the file: another one that has taken its place is left alone.
    file: (u64, u64),
    over: Arc<AtomicBool>,
}

impl Server {
    /// Listens at `path`. The socket of a killed run is replaced.
    ///
    /// # Errors
    /// There is something else, a run that goes on, or no place for a socket.
    pub fn listen(path: &Path, controls: &Controls) -> anyhow::Result<Server> {
        let named = || format!("cannot use {} for --control", path.display());
        let (listener, file) = bind(path).with_context(named)?;
        let over = Arc::new(AtomicBool::new(false));
        let server = Server { path: path.to_owned(), file, over: over.clone() };
        let controls = controls.clone();
        let accept = move || accept_all(&listener, &controls, &over);
        thread::Builder::new().name("control".to_owned()).spawn(accept).with_context(named)?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // The thread that accepts is woken, and ends.
        let _ = UnixStream::connect(&self.path);
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The identity of a file.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// A listener at `path`. The socket appears there with its permissions.
fn bind(path: &Path) -> anyhow::Result<(UnixListener, (u64, u64))> {
    make_room(path)?;
    let name = path.file_name().context("it has no name")?.to_string_lossy();
    let hidden = path.with_file_name(format!(".{name}.{}", process::id()));
    let _ = fs::remove_file(&hidden);
    let listener = UnixListener::bind(&hidden)?;
    let placed = fs::set_permissions(&hidden, Permissions::from_mode(0o600))
        // Unlike a rename, it replaces nothing.
        .and_then(|()| fs::hard_link(&hidden, path))
        .and_then(|()| identity(path));
    let _ = fs::remove_file(&hidden);
    Ok((listener, placed?))
}

/// Takes away the socket of a run that was killed.
fn make_room(path: &Path) -> anyhow::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        bail!("there is a file that is no socket");
    }
    match UnixStream::connect(path) {
        Ok(_) => bail!("a program listens there already"),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        Err(error) => Err(error.into()),
    }
}

fn accept_all(listener: &UnixListener, controls: &Controls, over: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    for client in listener.incoming() {
        if over.load(Ordering::Acquire) {
            return;
        }
        let Ok(client) = client else {
            // No more files, for a while.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let _ = client.set_write_timeout(Some(PATIENCE));
        match ackclock_live::is_same_user(&client) {
            Ok(true) => {}
            Ok(false) => {
                refuse(&client, "this run belongs to another user");
                continue;
            }
            Err(_) => continue,
        }
        if open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS {
            open.fetch_sub(1, Ordering::AcqRel);
            refuse(&client, &format!("there are {CONNECTIONS} connections already"));
            continue;
        }
        let place = Place(open.clone());
        let controls = controls.clone();
        let talk = move || {
            let _place = place;
            let _ = talk(&client, &controls);
        };
        // Without a thread the connection is closed.
        let _ = thread::Builder::new().name("control client".to_owned()).spawn(talk);
    }
}

/// One of the connections that there may be.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn refuse(mut client: &UnixStream, why: &str) {
    let _ = client.write_all(format!("error {why}\n").as_bytes());
}

/// Answers requests until the client leaves.
fn talk(mut client: &UnixStream, controls: &Controls) -> io::Result<()> {
    let mut waiting = Vec::new();
    let mut piece = [0; 4096];
    loop {
        while let Some(end) = waiting.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = waiting.drain(..=end).collect();
            let Ok(request) = str::from_utf8(&line) else {
                refuse(client, "the request is not UTF-8");
                continue;
            };
            client.write_all(answer(controls, request.trim()).as_bytes())?;
            if is_stop(request) {
                controls.stop();
            }
        }
        if waiting.len() > LINE {
            refuse(client, &format!("a request of more than {LINE} bytes"));
            return Ok(());
        }
        // Between two requests it may think.
        client.set_read_timeout((!waiting.is_empty()).then_some(PATIENCE))?;
        match client.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => waiting.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
