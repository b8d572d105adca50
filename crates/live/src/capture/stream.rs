//! Reading a file in contiguous pieces, in constant memory.

use std::fmt;
use std::io::{self, Read};

/// Bytes per read.
const READ: usize = 256 << 10;

/// A file, with a piece of it in memory.
pub(super) struct PieceReader {
    file: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The piece; bytes that have been read ahead follow it up to `end`.
    piece: (usize, usize),
    end: usize,
    /// Bytes of the file before the piece.
    position: u64,
}

impl PieceReader {
    pub(super) fn new(file: impl Read + Send + 'static) -> PieceReader {
        PieceReader { file: Box::new(file), buffer: vec![0; READ], piece: (0, 0), end: 0, position: 0 }
    }

    /// The piece last taken.
    pub(super) fn piece(&self) -> &[u8] {
        &self.buffer[self.piece.0..self.piece.1]
    }

    /// The offset of the piece in the file.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Empties the piece: reading continues behind it.
    pub(super) fn leave(&mut self) {
        self.position += (self.piece.1 - self.piece.0) as u64;
        self.piece.0 = self.piece.1;
    }

    /// Returns up to `len` bytes behind the piece without taking them; fewer at the end of the
    /// file.
    pub(super) fn look(&mut self, len: usize) -> io::Result<&[u8]> {
        self.fill(len)?;
        let from = self.piece.1;
        Ok(&self.buffer[from..self.end.min(from + len)])
    }

    /// Takes the next `len` bytes as the piece; `false` if the file has fewer.
    pub(super) fn take(&mut self, len: usize) -> io::Result<bool> {
        self.leave();
        self.fill(len)?;
        if self.end - self.piece.1 < len {
            return Ok(false);
        }
        self.piece.1 += len;
        Ok(true)
    }

    /// Skips the next `len` bytes; `false` if the file has fewer.
    pub(super) fn skip(&mut self, mut len: u64) -> io::Result<bool> {
        while len > 0 {
            let step = len.min(READ as u64) as usize;
            if !self.take(step)? {
                return Ok(false);
            }
            len -= step as u64;
        }
        self.leave();
        Ok(true)
    }

    /// Reads until `len` bytes are buffered behind the piece, or the file ends.
    fn fill(&mut self, len: usize) -> io::Result<()> {
        while self.end - self.piece.1 < len {
            if self.piece.0 > 0 && self.buffer.len() - self.piece.1 < len {
                self.buffer.copy_within(self.piece.0..self.end, 0);
                self.end -= self.piece.0;
                self.piece = (0, self.piece.1 - self.piece.0);
            }
            if self.buffer.len() - self.piece.1 < len {
                self.buffer.resize(self.piece.1 + len, 0);
            }
            match self.file.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for PieceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceReader")
            .field("position", &self.position)
            .field("piece", &self.piece)
            .finish_non_exhaustive()
    }
}
