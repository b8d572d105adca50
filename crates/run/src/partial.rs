//! Files that do not appear until they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A file that is being written, under a hidden name that ends in `.partial`, or in memory.
/// Dropped, it is removed.
#[derive(Debug)]
pub struct Partial {
    written: Hidden,
    writer: Writer,
    hash: Sha256,
    bytes: u64,
}

/// The destination of the contents.
#[derive(Debug)]
enum Writer {
    File(BufWriter<File>),
    Memory(Vec<u8>),
}

/// A file with all its contents on the disk, still hidden. Dropped, it is removed.
#[derive(Debug)]
pub struct Sealed {
    written: Hidden,
    entry: Value,
    /// The contents, of a file in memory.
    contents: Option<Vec<u8>>,
}

/// A folder that somebody else fills, likewise hidden. Dropped, it is removed with what is in it.
#[derive(Debug)]
pub(crate) struct PartialFolder {
    dir: PathBuf,
    path: PathBuf,
    name: String,
}

/// The hidden file, and its final name.
#[derive(Debug)]
struct Hidden {
    path: PathBuf,
    /// Its name in the manifest, relative to the directory.
    name: String,
    published: bool,
}

impl Partial {
    /// Begins the file that will be `name`, which may be in a folder of `dir`.
    pub fn create(dir: &Path, name: &str) -> io::Result<Partial> {
        let path = hidden(dir, name);
        let file = options().truncate(true).open(&path)?;
        let written = Hidden { path, name: name.to_owned(), published: false };
        Ok(Partial { written, writer: Writer::File(BufWriter::new(file)), hash: Sha256::new(), bytes: 0 })
    }

    /// Begins a file in memory, which never gets onto the disk.
    pub(crate) fn in_memory(name: &str) -> Partial {
        let written = Hidden { path: PathBuf::from(name), name: name.to_owned(), published: true };
        Partial { written, writer: Writer::Memory(Vec::new()), hash: Sha256::new(), bytes: 0 }
    }

    /// Goes on with the file that will be `name` behind its first lines, as far as they are whole
    /// and `keep` takes them. `None` if it was not begun.
    pub(crate) fn resume(dir: &Path, name: &str, mut keep: impl FnMut(&[u8]) -> bool) -> io::Result<Option<Partial>> {
        let path = hidden(dir, name);
        let mut file = match options().read(true).create(false).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (mut bytes, mut hash, mut line) = (0, Sha256::new(), Vec::new());
        let mut reader = BufReader::new(&file);
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") && keep(&line) {
            hash.update(&line);
            bytes += line.len() as u64;
            line.clear();
        }
        file.set_len(bytes)?;
        file.seek(SeekFrom::End(0))?;
        let written = Hidden { path, name: name.to_owned(), published: false };
        Ok(Some(Partial { written, writer: Writer::File(BufWriter::new(file)), hash, bytes }))
    }

    /// Leaves the file as it is, for somebody who goes on with it.
    pub(crate) fn leave(mut self) {
        let _ = self.flush();
        self.written.published = true;
    }

    /// Where it is now.
    pub(crate) fn path(&self) -> &Path {
        &self.written.path
    }

    /// Brings the contents to the disk.
    pub fn seal(self) -> io::Result<Sealed> {
        let Partial { written, writer, hash, bytes } = self;
        let contents = match writer {
            Writer::File(writer) => {
                writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
                None
            }
            Writer::Memory(contents) => Some(contents),
        };
        Ok(Sealed { written, entry: entry(bytes, hash), contents })
    }
}

impl PartialFolder {
    /// Begins the folder that will be `name` in `dir`.
    pub(crate) fn create(dir: &Path, name: &str) -> io::Result<PartialFolder> {
        let path = hidden(dir, name);
        fs::create_dir(&path)?;
        Ok(PartialFolder { dir: dir.to_owned(), path, name: name.to_owned() })
    }

    /// Where it is now.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Brings its files to the disk, in the order of their names.
    pub(crate) fn seal(self) -> io::Result<Vec<Sealed>> {
        let entries = fs::read_dir(&self.path)?.map(|entry| entry.map(|entry| entry.file_name()));
        let mut names = entries.collect::<io::Result<Vec<_>>>()?;
        names.sort();
        // Anything with another name, or that is not a file, was not made here.
        let ours = names.iter().filter_map(|name| name.to_str());
        ours.filter(|name| self.path.join(name).symlink_metadata().is_ok_and(|found| found.is_file()))
            .map(|name| self.seal_file(name))
            .collect()
    }

    fn seal_file(&self, file: &str) -> io::Result<Sealed> {
        let name = format!("{}/{file}", self.name);
        let path = hidden(&self.dir, &name);
        fs::rename(self.path.join(file), &path)?;
        Sealed::of(path, name)
    }
}

impl Sealed {
    /// A hidden file that has all its contents, which will be `name`.
    pub(crate) fn of(path: PathBuf, name: String) -> io::Result<Sealed> {
        let written = Hidden { path, name, published: false };
        let mut file = File::open(&written.path)?;
        let (mut hash, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; 64 << 10]);
        loop {
            let len = file.read(&mut chunk)?;
            if len == 0 {
                break;
            }
            hash.update(&chunk[..len]);
            bytes += len as u64;
        }
        file.sync_all()?;
        Ok(Sealed { written, entry: entry(bytes, hash), contents: None })
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The options to open a hidden file: made if it is not there, and not where a symbolic link leads.
pub(crate) fn options() -> OpenOptions {
    let mut options = File::options();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::fcntl::OFlag::O_NOFOLLOW.bits());
    options
}

/// Where a file or a folder is that will be `name` in `dir`: in `dir` itself, so that a folder
/// appears with its files.
pub(crate) fn hidden(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!(".{}.partial", name.replace('/', "-")))
}

/// A file in the manifest.
fn entry(bytes: u64, hash: Sha256) -> Value {
    json!({ "bytes": bytes, "sha256": hex(hash) })
}

/// A hash as manifests have it.
pub(crate) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.writer {
            Writer::File(file) => file.write(bytes)?,
            Writer::Memory(contents) => {
                contents.extend_from_slice(bytes);
                self.bytes += bytes.len() as u64;
                return Ok(bytes.len());
            }
        };
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::File(file) => file.flush(),
            Writer::Memory(_) => Ok(()),
        }
    }
}

impl Sealed {
    /// Leaves the file as it is, for somebody who goes on with the output.
    pub(crate) fn leave(mut self) {
        self.written.published = true;
    }

    /// The name and the contents of a file in memory.
    pub(crate) fn into_contents(mut self) -> Option<(String, Vec<u8>)> {
        let name = self.written.name.clone();
        self.contents.take().map(|contents| (name, contents))
    }

    /// Its name, and its entry in the manifest.
    pub(crate) fn listed(&self) -> (String, Value) {
        (self.written.name.clone(), self.entry.clone())
    }

    /// Gives the file its name.
    pub fn publish(mut self, dir: &Path) -> io::Result<()> {
        let path = dir.join(&self.written.name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(&self.written.path, path)?;
        self.written.published = true;
        Ok(())
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.path);
        }
    }
}
