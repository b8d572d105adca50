//! Files that end: those of results, and those that scenarios name, may have been put there by
//! somebody else. A device may never end, and a pipe never begin.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Opens a regular file.
///
/// # Errors
/// There is none of that name, it cannot be opened, or it is something else.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let other = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    // To open a pipe may take for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(other());
    }
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
}

/// Opens a regular file of `bytes` bytes.
///
/// # Errors
/// The same, or it is longer or shorter.
pub fn open_of_size(path: &Path, bytes: u64) -> io::Result<File> {
    let file = open_regular(path)?;
    let found = file.metadata()?.len();
    if found == bytes {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has {found} bytes, and the manifest says {bytes}")))
}
