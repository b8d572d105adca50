//! `ackclock import`: scenarios of other programs' configurations.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ackclock_tc::{Options, Source};
use ackclock_trace::open_regular;
use ackclock_units::{parse_rate, parse_span};
use anyhow::{Context, bail};

use crate::args::import::{ImportArgs, ImportFormat, ImportTcArgs};
use crate::console::{print, say};
use crate::export::to_file;

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// Imports; the status to end with.
pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<u8> {
    let ImportFormat::Tc(args) = &args.format;
    let mut options = Options::default();
    if let Some(text) = &args.rate {
        options.rate = Some(parse_rate(text.trim()).with_context(|| format!("--rate {text}"))?);
    }
    if let Some(text) = &args.delay {
        options.delay = Some(parse_span(text.trim()).with_context(|| format!("--delay {text}"))?);
    }
    for text in &args.define {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            bail!("--define {text}: expected NAME=VALUE");
        };
        options.variables.push((name.to_owned(), value.to_owned()));
    }
    let texts = args.files.iter().map(|path| contents(path)).collect::<anyhow::Result<Vec<(String, String)>>>()?;
    let sources: Vec<Source<'_>> = texts.iter().map(|(name, text)| Source { name, text }).collect();
    let imported = ackclock_tc::import(&sources, &options)?;
    write(&imported.text, args)?;
    for left in &imported.left {
        say(&format!("not carried over: {left}"));
    }
    Ok(0)
}

fn write(text: &str, args: &ImportTcArgs) -> anyhow::Result<()> {
    match &args.output {
        Some(path) => to_file(path, |out| Ok(out.write_all(text.as_bytes())?)),
        None => print(text).map(|_| ()),
    }
}

/// Name and contents of a file.
fn contents(path: &Path) -> anyhow::Result<(String, String)> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let read = |stream: &mut dyn Read, bytes: &mut Vec<u8>| stream.take(MAX_FILE + 1).read_to_end(bytes);
    if name == "-" {
        read(&mut io::stdin(), &mut bytes).context("cannot read standard input")?;
    } else {
        let mut file: File = open_regular(path).with_context(|| format!("cannot read {name}"))?;
        read(&mut file, &mut bytes).with_context(|| format!("cannot read {name}"))?;
    }
    if bytes.len() as u64 > MAX_FILE {
        bail!("{name} is larger than {MAX_FILE} bytes");
    }
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8 text"))?;
    Ok((name, text))
}
