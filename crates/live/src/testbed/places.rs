//! Where runs are registered, and where namespaces have their names.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The variable that names another directory for both: where those of the machine are not ours to
/// write, and for what is started there.
pub(super) const VARIABLE: &str = "ACKCLOCK_RUN_DIR";

/// Both directories, if they are not those of the machine.
static OWN: OnceLock<Option<[PathBuf; 2]>> = OnceLock::new();

/// Has this process keep both below `base`, unless they have been asked for before.
pub(super) fn keep_below(base: &Path) {
    let _ = OWN.set(Some(below(base)));
}

/// Where runs are registered.
pub(super) fn runs() -> &'static Path {
    own().map_or(Path::new("/run/ackclock"), |[runs, _]| runs)
}

/// Where namespaces have their names: for the machine's, where `ip netns` has them.
pub(super) fn namespaces() -> &'static Path {
    own().map_or(Path::new("/run/netns"), |[_, namespaces]| namespaces)
}

/// What programs are told, for runs of their own.
pub(super) fn base() -> Option<&'static Path> {
    own().and_then(|[runs, _]| runs.parent())
}

fn own() -> Option<&'static [PathBuf; 2]> {
    OWN.get_or_init(|| env::var_os(VARIABLE).map(|base| below(Path::new(&base)))).as_ref()
}

fn below(base: &Path) -> [PathBuf; 2] {
    [base.join("runs"), base.join("netns")]
}
