//! The image that guests start from.

/// Directory of the image that hosts use unless they name another.
pub const IMAGE: &str = "ACKCLOCK_UML_IMAGE";

#[cfg(target_os = "linux")]
pub(crate) use files::{Image, lack};

#[cfg(target_os = "linux")]
mod files {
    use std::collections::BTreeMap;
    use std::fs::{File, Metadata};
    use std::io::{self, Read};
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};
    use std::sync::Mutex;

    use ackclock_stack::Lack;

    use super::IMAGE;

    /// What a kernel with CONFIG_UML_TIME_TRAVEL_SUPPORT says of its argument (`arch/um/kernel/time.c`,
    /// `__uml_help(setup_time_travel, ...)`).
    const TRAVELS: &[u8] = b"time-travel=ext";
    /// The beginning of a program of Linux.
    const ELF: &[u8] = b"\x7fELF";
    /// What is expected in place of an image that is missing or unfit.
    const EXPECTED: &str = "a directory that `crates/uml/build-image DIR` has built (docs/kernel.md), as `image = \"DIR\"` or \
                            in the environment (ACKCLOCK_UML_IMAGE=DIR)";

    /// A kernel, and the file system that it starts from.
    pub(crate) struct Image {
        pub(crate) kernel: PathBuf,
        pub(crate) initrd: PathBuf,
    }

    impl Image {
        /// The image of a host that names this one, or none.
        fn named(name: &str) -> Option<Image> {
            let directory = match name {
                "" => std::env::var_os(IMAGE).map(PathBuf::from)?,
                path => PathBuf::from(path),
            };
            let [kernel, initrd] = ["linux", "initrd"].map(|file| directory.join(file));
            Some(Image { kernel, initrd })
        }

        /// The image of a host that names this one, or none, if it is there and fit.
        pub(crate) fn find(name: &str) -> Result<Image, String> {
            let image = Image::named(name);
            match (problem(image.as_ref()), image) {
                (None, Some(image)) => Ok(image),
                (what, _) => Err(format!("{}: expected {EXPECTED}", what.unwrap_or_default())),
            }
        }
    }

    /// What a machine lacks for the host with these texts.
    pub(crate) fn lack(texts: &[String]) -> Option<Lack> {
        let what = problem(Image::named(texts.first()?).as_ref())?;
        Some(Lack { key: "image", what, expected: EXPECTED.to_owned() })
    }

    fn problem(image: Option<&Image>) -> Option<String> {
        let Some(Image { kernel, initrd }) = image else { return Some("no image of a kernel".to_owned()) };
        if let Some(missing) = [kernel, initrd].into_iter().find(|file| !file.is_file()) {
            return Some(format!("there is no {}", missing.display()));
        }
        match travels(kernel) {
            Ok(true) => None,
            Ok(false) => {
                let what =
                    "is not a User Mode Linux with CONFIG_UML_TIME_TRAVEL_SUPPORT, which is in Linux from 5.9 on";
                Some(format!("{} {what}", kernel.display()))
            }
            Err(error) => Some(format!("cannot read {}: {error}", kernel.display())),
        }
    }

    /// Returns `true` if a program is a kernel whose time another program can keep. A kernel is read
    /// once, unless it changes.
    fn travels(kernel: &Path) -> io::Result<bool> {
        static KNOWN: Mutex<BTreeMap<PathBuf, ([i64; 4], bool)>> = Mutex::new(BTreeMap::new());
        let state = |of: &Metadata| [of.ino() as i64, of.len() as i64, of.mtime(), of.mtime_nsec()];
        let file = File::open(kernel)?;
        let state = state(&file.metadata()?);
        let known = |of: &([i64; 4], bool)| (of.0 == state).then_some(of.1);
        if let Some(known) = KNOWN.lock().ok().and_then(|all| all.get(kernel).and_then(known)) {
            return Ok(known);
        }
        let travels = contains(file, ELF, TRAVELS)?;
        if let Ok(mut all) = KNOWN.lock() {
            all.insert(kernel.to_owned(), (state, travels));
        }
        Ok(travels)
    }

    /// Returns `true` if a file begins with the one text, and has the other.
    fn contains(mut file: impl Read, beginning: &[u8], text: &[u8]) -> io::Result<bool> {
        const CHUNK: u64 = 1 << 20;
        let mut chunk = Vec::new();
        let mut is_first = true;
        loop {
            let before = chunk.len();
            let read = file.by_ref().take(CHUNK).read_to_end(&mut chunk)?;
            if read == 0 || (is_first && !chunk.starts_with(beginning)) {
                return Ok(false);
            }
            is_first = false;
            if chunk.windows(text.len()).any(|window| window == text) {
                return Ok(true);
            }
            // The text may begin at the end of a part.
            chunk.drain(..(before + read).saturating_sub(text.len() - 1));
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_text_is_found_anywhere_in_a_file() {
            let mut file = ELF.to_vec();
            file.resize((1 << 20) - 5, 0);
            assert!(!contains(file.as_slice(), ELF, TRAVELS).expect("it can be read"));
            // Across the end of the first part.
            file.extend(TRAVELS);
            assert!(contains(file.as_slice(), ELF, TRAVELS).expect("it can be read"));
            assert!(!contains(&file[1..], ELF, TRAVELS).expect("it can be read"));
        }

        #[test]
        fn a_program_that_is_no_kernel_is_unfit() {
            let directory = std::env::temp_dir().join(format!("ackclock-image-{}", std::process::id()));
            std::fs::create_dir_all(&directory).expect("a directory");
            for file in ["linux", "initrd"] {
                std::fs::copy("/bin/true", directory.join(file)).expect("a program");
            }
            let error = Image::find(directory.to_str().expect("a path")).err().expect("it is no kernel");
            std::fs::remove_dir_all(&directory).expect("the directory");
            assert!(error.contains("CONFIG_UML_TIME_TRAVEL_SUPPORT") && error.contains("build-image"), "{error}");
        }
    }
}
