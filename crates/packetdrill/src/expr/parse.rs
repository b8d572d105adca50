//! From tokens to statements.

use super::syntax::{MAX_DEPTH, Statement, StatementKind};
use super::token::{Line, lines};
use crate::error::ParseError;

mod expression;

use expression::Reader;

pub(super) fn parse(text: &str) -> Result<Vec<Statement>, ParseError> {
    let lines = lines(text)?;
    let mut blocks = Blocks { text, lines: &lines, at: 0 };
    let mut indent = 0;
    let mut body = Vec::new();
    // The lines after that of `%{` have an indentation of their own.
    if lines.first().is_some_and(|line| line.inline) {
        blocks.statement(0, 0, &mut body)?;
    }
    if let Some(line) = lines.get(blocks.at) {
        indent = line.indent;
    }
    blocks.block(indent, 0, &mut body)?;
    match lines.get(blocks.at) {
        Some(line) => Err(blocks.indentation(line)),
        None => Ok(body),
    }
}

/// Adds `lines` to the numbers of lines.
pub(super) fn renumber(body: &mut [Statement], lines: u32) {
    for statement in body {
        statement.line = statement.line.saturating_add(lines);
        if let StatementKind::If { branches, otherwise } = &mut statement.kind {
            branches.iter_mut().for_each(|(_, body)| renumber(body, lines));
            renumber(otherwise, lines);
        }
    }
}

/// Reads statements line by line.
struct Blocks<'a> {
    text: &'a str,
    lines: &'a [Line],
    at: usize,
}

impl<'a> Blocks<'a> {
    fn indentation(&self, line: &Line) -> ParseError {
        let place = line.tokens.first().map_or(0..0, |token| token.place.clone());
        ParseError::at(self.text, place, "an indentation that fits no block")
    }

    /// The lines with this indentation, and the blocks that belong to them.
    fn block(&mut self, indent: usize, depth: u16, body: &mut Vec<Statement>) -> Result<(), ParseError> {
        while let Some(line) = self.lines.get(self.at) {
            if line.indent < indent {
                return Ok(());
            }
            if line.indent > indent {
                return Err(self.indentation(line));
            }
            self.statement(indent, depth, body)?;
        }
        Ok(())
    }

    fn reader(&self, line: &'a Line) -> Reader<'a> {
        Reader { text: self.text, tokens: &line.tokens, at: 0, depth: 0 }
    }

    /// One logical line, with its block if it has one.
    fn statement(&mut self, indent: usize, depth: u16, body: &mut Vec<Statement>) -> Result<(), ParseError> {
        let Some(line) = self.lines.get(self.at) else { return Ok(()) };
        let mut reader = self.reader(line);
        if !reader.is_name("if") {
            self.at += 1;
            return reader.simple_statements(body);
        }
        if depth >= MAX_DEPTH {
            return Err(reader.error("blocks nested too deep"));
        }
        let number = reader.line();
        reader.at += 1;
        let mut branches = Vec::new();
        let condition = reader.expression()?;
        branches.push((condition, self.suite(reader, indent, depth)?));
        let mut otherwise = Vec::new();
        while let Some(line) = self.lines.get(self.at).filter(|line| line.indent == indent || line.inline) {
            let mut reader = self.reader(line);
            if reader.accept_name("elif") {
                let condition = reader.expression()?;
                branches.push((condition, self.suite(reader, indent, depth)?));
            } else if reader.accept_name("else") {
                otherwise = self.suite(reader, indent, depth)?;
                break;
            } else {
                break;
            }
        }
        body.push(Statement { line: number, kind: StatementKind::If { branches, otherwise } });
        Ok(())
    }

    /// Reads the part after a condition: a colon, and statements on the same line or a block.
    fn suite(&mut self, mut reader: Reader<'a>, indent: usize, depth: u16) -> Result<Vec<Statement>, ParseError> {
        reader.expect(":")?;
        self.at += 1;
        let mut body = Vec::new();
        if !reader.is_end() {
            reader.simple_statements(&mut body)?;
            return Ok(body);
        }
        match self.lines.get(self.at) {
            Some(line) if line.indent > indent => self.block(line.indent, depth + 1, &mut body)?,
            _ => return Err(reader.error("a condition without a block").expected("an indented line after it")),
        }
        Ok(body)
    }
}
