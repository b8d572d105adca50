//! Files that are not there until they are complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A file that is being written, under a hidden name that ends in `.partial`. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Partial {
    written: Hidden,
    writer: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
}

/// A file with all its contents on the disk, still hidden. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Sealed {
    written: Hidden,
    entry: Value,
}

/// The hidden file, and what is to become of it.
#[derive(Debug)]
struct Hidden {
    path: PathBuf,
    /// Its name in the manifest, relative to the directory.
    name: String,
    published: bool,
}

impl Partial {
    /// Begins the file that will be `name`, which may be in a folder of `dir`. Hidden files are in `dir` itself, so that a
    /// folder appears with its files.
    pub(crate) fn create(dir: &Path, name: &str) -> io::Result<Partial> {
        let path = dir.join(format!(".{}.partial", name.replace('/', "-")));
        let file = File::create(&path)?;
        let written = Hidden { path, name: name.to_owned(), published: false };
        Ok(Partial { written, writer: BufWriter::new(file), hash: Sha256::new(), bytes: 0 })
    }

    /// Where it is now.
    pub(crate) fn path(&self) -> &Path {
        &self.written.path
    }

    /// Brings the contents to the disk.
    pub(crate) fn seal(self) -> io::Result<Sealed> {
        let Partial { written, writer, hash, bytes } = self;
        writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Sealed { written, entry: json!({ "bytes": bytes, "sha256": hash }) })
    }
}

impl Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Sealed {
    /// Gives the file its name; that and its entry in the manifest.
    pub(crate) fn publish(mut self, dir: &Path) -> io::Result<(String, Value)> {
        let path = dir.join(&self.written.name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(&self.written.path, path)?;
        self.written.published = true;
        Ok((std::mem::take(&mut self.written.name), std::mem::take(&mut self.entry)))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.path);
        }
    }
}
