//! The directories of the records of runs and of named namespaces.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The environment variable with a directory for both, where the machine's are not writable, and
/// for programs that are started there.
pub(super) const VARIABLE: &str = "ACKCLOCK_RUN_DIR";

/// Both directories, if they are not the machine's.
static OWN: OnceLock<Option<[PathBuf; 2]>> = OnceLock::new();

/// Moves both directories below `base`, unless they have been used before.
pub(super) fn keep_below(base: &Path) {
    let _ = OWN.set(Some(below(base)));
}

/// The directory of the records of runs.
pub(super) fn runs() -> &'static Path {
    own().map_or(Path::new("/run/ackclock"), |[runs, _]| runs)
}

/// The directory of named namespaces; the machine's is that of `ip netns`.
pub(super) fn namespaces() -> &'static Path {
    own().map_or(Path::new("/run/netns"), |[_, namespaces]| namespaces)
}

/// The value of [`VARIABLE`] for programs that are started.
pub(super) fn base() -> Option<&'static Path> {
    own().and_then(|[runs, _]| runs.parent())
}

fn own() -> Option<&'static [PathBuf; 2]> {
    OWN.get_or_init(|| env::var_os(VARIABLE).map(|base| below(Path::new(&base)))).as_ref()
}

fn below(base: &Path) -> [PathBuf; 2] {
    [base.join("runs"), base.join("netns")]
}
