//! Lines as bytes between processes of one version: for each its run, whether that failed, its
//! JSON, and its records. Numbers have 8 bytes, least significant first; texts and contents follow
//! their lengths.

use ackclock_run::batch::Line;

pub(crate) fn pack(lines: &[Line]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.json.len() + 32).sum());
    let number = |bytes: &mut Vec<u8>, number: usize| bytes.extend((number as u64).to_le_bytes());
    let block = |bytes: &mut Vec<u8>, block: &[u8]| {
        bytes.extend((block.len() as u64).to_le_bytes());
        bytes.extend(block);
    };
    for line in lines {
        number(&mut bytes, line.run);
        bytes.push(line.failed.into());
        block(&mut bytes, line.json.as_bytes());
        number(&mut bytes, line.records.len());
        for (name, contents) in &line.records {
            block(&mut bytes, name.as_bytes());
            block(&mut bytes, contents);
        }
    }
    bytes
}

/// `None` if these are other bytes.
pub(crate) fn unpack(mut bytes: &[u8]) -> Option<Vec<Line>> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let run = number(&mut bytes)?;
        let failed = match bytes.split_off_first()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let json = text(&mut bytes)?;
        let mut records = Vec::new();
        for _ in 0..number(&mut bytes)? {
            records.push((text(&mut bytes)?, block(&mut bytes)?.to_vec()));
        }
        lines.push(Line { run, json, failed, records });
    }
    Some(lines)
}

pub(crate) fn number(bytes: &mut &[u8]) -> Option<usize> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    usize::try_from(u64::from_le_bytes(*first)).ok()
}

fn block<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(bytes)?;
    bytes.split_off(..length)
}

fn text(bytes: &mut &[u8]) -> Option<String> {
    String::from_utf8(block(bytes)?.to_vec()).ok()
}
