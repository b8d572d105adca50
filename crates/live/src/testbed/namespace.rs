//! Named network namespaces, as `ip netns` creates them.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use super::record::RunRecord;
use super::{netlink, places};

/// A named namespace, which exists at least as long as this.
#[derive(Debug)]
pub(super) struct NetworkNamespace {
    name: String,
    file: File,
    id: NamespaceId,
    ours: bool,
}

/// The identity of a namespace, by which its processes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamespaceId {
    device: u64,
    inode: u64,
}

impl NetworkNamespace {
    /// Opens the namespace with this name, or creates it.
    pub(super) fn open_or_make(name: &str, record: &mut RunRecord) -> io::Result<NetworkNamespace> {
        match NetworkNamespace::open(name)? {
            Some(there) => Ok(there),
            None => NetworkNamespace::make(name, record),
        }
    }

    /// The namespace with this name, if it exists.
    pub(super) fn open(name: &str) -> io::Result<Option<NetworkNamespace>> {
        match File::open(path(name)) {
            Ok(file) => {
                let id = NamespaceId::of(&file.metadata()?);
                Ok(Some(NetworkNamespace { name: name.to_owned(), file, id, ours: false }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The namespace of this process, with or without a name.
    pub(super) fn current() -> io::Result<NetworkNamespace> {
        let file = File::open("/proc/self/ns/net")?;
        let id = NamespaceId::of(&file.metadata()?);
        Ok(NetworkNamespace { name: String::from("of this process"), file, id, ours: false })
    }

    fn make(name: &str, record: &mut RunRecord) -> io::Result<NetworkNamespace> {
        prepare_directory()?;
        record.namespace(name)?;
        let alias = record.token().to_owned();
        let file = on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            // Its owner has to be visible before it has a name.
            netlink::claim(&alias)?;
            let file = File::open("/proc/thread-self/ns/net")?;
            let path = path(name);
            OpenOptions::new().write(true).create_new(true).open(&path)?;
            let mounted = mount(Some("/proc/thread-self/ns/net"), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>);
            if let Err(error) = mounted {
                let _ = fs::remove_file(&path);
                return Err(not_mounted(error));
            }
            Ok(file)
        })?;
        let id = NamespaceId::of(&file.metadata()?);
        Ok(NetworkNamespace { name: name.to_owned(), file, id, ours: true })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn id(&self) -> NamespaceId {
        self.id
    }

    /// Returns `true` if this run created it.
    pub(super) fn is_ours(&self) -> bool {
        self.ours
    }

    /// The run of ackclock that created it, if any.
    ///
    /// # Errors
    /// `EINVAL` for a file on which no namespace is mounted.
    pub(super) fn owner(&self) -> io::Result<Option<String>> {
        inside(Some(self), netlink::claimed_by)
    }

    /// Removes its name if this run created it: the namespace disappears with its last process and
    /// file.
    pub(super) fn remove(self) -> io::Result<()> {
        if self.ours { unmount(&self.name) } else { Ok(()) }
    }
}

impl NamespaceId {
    /// The identity of a namespace by its file, in `/run/netns` or in `/proc`.
    pub(super) fn of(metadata: &fs::Metadata) -> NamespaceId {
        NamespaceId { device: metadata.dev(), inode: metadata.ino() }
    }

    /// The namespace of a process; `self` for this one.
    pub(super) fn of_process(pid: &str) -> io::Result<NamespaceId> {
        Ok(NamespaceId::of(&fs::metadata(Path::new("/proc").join(pid).join("ns/net"))?))
    }
}

impl fmt::Display for NamespaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device, self.inode)
    }
}

/// The namespace with this [`NamespaceId`], if it is that of this process (`Some(None)`) or of the
/// system's first process, or has a name. `None` if it is gone.
pub(super) fn find(id: &str) -> io::Result<Option<Option<NetworkNamespace>>> {
    let is_it = |id_there: io::Result<NamespaceId>| id_there.is_ok_and(|there| there.to_string() == id);
    if is_it(NamespaceId::of_process("self")) {
        return Ok(Some(None));
    }
    let names = fs::read_dir(places::namespaces()).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files = names.chain([PathBuf::from("/proc/1/ns/net")]);
    let Some(path) = files.find(|path| is_it(fs::metadata(path).map(|metadata| NamespaceId::of(&metadata)))) else {
        return Ok(None);
    };
    let file = File::open(&path)?;
    let (name, id) = (path.display().to_string(), NamespaceId::of(&file.metadata()?));
    Ok(Some(Some(NetworkNamespace { name, file, id, ours: false })))
}

/// Returns `true` if a name is valid for a file in a directory.
pub(super) fn is_safe(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && name.len() <= 255 && !name.contains(|c: char| c == '/' || c.is_control())
}

/// The file of a namespace.
fn path(name: &str) -> PathBuf {
    places::namespaces().join(name)
}

/// Removes the name of a namespace, or a file that was to become one.
pub(super) fn unmount(name: &str) -> io::Result<()> {
    let path = path(name);
    // `EINVAL`: nothing is mounted there.
    match umount2(&path, MntFlags::MNT_DETACH) {
        Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => {}
        Err(error) => return Err(error.into()),
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Calls `f` in a namespace, or that of this process, on a separate thread.
pub(super) fn inside<T: Send>(
    namespace: Option<&NetworkNamespace>,
    f: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    on_a_thread(|| {
        if let Some(namespace) = namespace {
            setns(&namespace.file, CloneFlags::CLONE_NEWNET)?;
        }
        f()
    })
}

fn on_a_thread<T: Send>(f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(String::from("namespace")).spawn_scoped(scope, f)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Prepares the directory as `ip netns add` does: a shared mount of its own, so that a namespace
/// that is unmounted here also disappears from the mount namespaces of `ip netns exec`.
fn prepare_directory() -> io::Result<()> {
    let directory = places::namespaces();
    fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    let share = || mount(None::<&str>, directory, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    match share() {
        // It is not a mount yet.
        Err(Errno::EINVAL) => {
            let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(Some(directory), directory, None::<&str>, flags, None::<&str>).and_then(|()| share())
        }
        other => other,
    }
    .map_err(not_mounted)
}

/// The error of a mount, with advice: the capability alone does not suffice in a container, nor in
/// a user namespace that does not own the mount namespace.
fn not_mounted(error: Errno) -> io::Error {
    match error {
        Errno::EPERM | Errno::EACCES => io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "mounts are not allowed ({}); a container may need --security-opt apparmor=unconfined",
                error.desc()
            ),
        ),
        _ => error.into(),
    }
}
