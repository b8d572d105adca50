//! A hash of the sources, by which the workers of a cluster are compared: the same on all machines
//! and for all compilers, with or without a repository.

use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The sources on which results may depend, relative to this package.
const SOURCES: [&str; 6] = ["src", "../Cargo.lock", "../aqm", "../cc", "../crates", "../emulator"];

/// FNV-1a of 64 bits, which std does not promise of its own hasher.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        add(&package.join(source), source, &mut hash);
    }
    println!("cargo::rustc-env=ACKCLOCK_BUILD={:016x}", hash.finish());
}

/// Adds a file, or what is in a folder but tests, by its name and contents.
fn add(path: &Path, name: &str, hash: &mut Fnv) {
    if let Ok(folder) = fs::read_dir(path) {
        let mut names: Vec<String> =
            folder.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        for inner in names.iter().filter(|inner| !["tests", "examples", "target"].contains(&inner.as_str())) {
            add(&path.join(inner), &format!("{name}/{inner}"), hash);
        }
    } else if let Ok(contents) = fs::read(path) {
        let is_source = [".rs", ".toml", ".lock", ".js"].iter().any(|end| name.ends_with(end));
        if is_source {
            hash.write(name.as_bytes());
            // However lines end in a checkout.
            hash.write(&contents.into_iter().filter(|&byte| byte != b'\r').collect::<Vec<u8>>());
        }
    }
}
