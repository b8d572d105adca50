//! `ackclock new`: a scenario to begin with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, bail};

use crate::args::NewArgs;
use crate::console::print;

const TEXT: &str = include_str!("starter.toml");

/// Prints the scenario or writes it to a new file; the status to end with.
pub(crate) fn run(args: &NewArgs) -> anyhow::Result<u8> {
    match &args.file {
        Some(file) => write(file)?,
        None => print(TEXT).map(|_| ())?,
    }
    Ok(0)
}

fn write(file: &Path) -> anyhow::Result<()> {
    let mut new = match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(new) => new,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} exists, and is not overwritten", file.display())
        }
        Err(error) => return Err(error).with_context(|| format!("cannot create {}", file.display())),
    };
    new.write_all(TEXT.as_bytes()).with_context(|| format!("cannot write {}", file.display()))
}
