//! From tokens to statements.

use std::ops::Range;

use super::Value;
use super::token::{CodeToken, Kind, Line, lines};
use crate::error::ParseError;

mod expression;

use expression::{binary, constant};

/// Deepest nesting of expressions, operators in a row counted; also of blocks.
const MAX_DEPTH: u16 = 64;

#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) line: u32,
    pub(super) kind: StatementKind,
}

#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    Assert { condition: Node, message: Option<Node> },
    Print(Vec<Node>),
    Assign { name: String, operator: Option<Binary>, value: Node },
    If { branches: Vec<(Node, Vec<Statement>)>, otherwise: Vec<Statement> },
    Compute(Node),
    Pass,
}

/// An expression, with its place in the code.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) place: Range<usize>,
    depth: u16,
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Literal(Value),
    Name(String),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    Compare(Box<Node>, Vec<(Comparison, Node)>),
    And(Vec<Node>),
    Or(Vec<Node>),
    /// Condition, value if it holds, value if not.
    Choice(Box<[Node; 3]>),
    Call(String, Vec<Node>),
    Tuple(Vec<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    Plus,
    Invert,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    Xor,
    And,
    Left,
    Right,
    Add,
    Subtract,
    Multiply,
    Divide,
    Floor,
    Modulo,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
    Is,
    IsNot,
}

/// Functions, with the least and greatest number of arguments.
pub(super) const FUNCTIONS: &[(&str, usize, usize)] = &[
    ("abs", 1, 1),
    ("bool", 1, 1),
    ("float", 1, 1),
    ("int", 1, 1),
    ("len", 1, 1),
    ("max", 1, 64),
    ("min", 1, 64),
    ("range", 1, 3),
    ("round", 1, 2),
    ("str", 1, 1),
];

/// Words that are no names.
const KEYWORDS: &[&str] = &[
    "and", "assert", "class", "def", "del", "elif", "else", "except", "for", "from", "global", "if", "import", "in",
    "is", "lambda", "not", "or", "pass", "print", "raise", "return", "try", "while", "with", "yield",
];

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

/// Reads the tokens of one line.
struct Reader<'a> {
    text: &'a str,
    tokens: &'a [CodeToken],
    at: usize,
    /// Calls of `choice` that are open.
    depth: u16,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn is_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn is_op(&self, op: &str) -> bool {
        matches!(self.peek(), Some(Kind::Op(found)) if *found == op)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Kind::Name(found)) if found == name)
    }

    fn accept(&mut self, op: &str) -> bool {
        let is = self.is_op(op);
        self.at += usize::from(is);
        is
    }

    fn accept_name(&mut self, name: &str) -> bool {
        let is = self.is_name(name);
        self.at += usize::from(is);
        is
    }

    fn place(&self) -> Range<usize> {
        match (self.tokens.get(self.at), self.tokens.last()) {
            (Some(token), _) => token.place.clone(),
            (None, Some(last)) => last.place.end..last.place.end,
            (None, None) => 0..0,
        }
    }

    /// The line of the next token.
    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    fn error(&self, title: &str) -> ParseError {
        ParseError::at(self.text, self.place(), title)
    }

    fn unexpected(&self, title: &str, expected: &str) -> ParseError {
        let found = match self.tokens.get(self.at) {
            Some(token) => format!("`{:.40}`", &self.text[token.place.clone()]),
            None => "the end of the line".to_owned(),
        };
        self.error(title).expected(expected).found(found)
    }

    fn expect(&mut self, op: &str) -> Result<(), ParseError> {
        if self.accept(op) {
            return Ok(());
        }
        Err(self.unexpected("code that cannot be read", &format!("`{op}`")))
    }

    /// Statements with semicolons between them, up to the end of the line.
    fn simple_statements(&mut self, body: &mut Vec<Statement>) -> Result<(), ParseError> {
        loop {
            // A backslash before the end leaves an empty statement, which Python does not take.
            if self.is_end() {
                return Ok(());
            }
            let line = self.line();
            let kind = self.simple_statement()?;
            body.push(Statement { line, kind });
            if !self.is_end() && !self.accept(";") {
                return Err(self.unexpected("code that cannot be read", "an operator, `;` or the end of the line"));
            }
        }
    }

    fn simple_statement(&mut self) -> Result<StatementKind, ParseError> {
        let name = match self.peek() {
            Some(Kind::Name(name)) => name.clone(),
            _ => String::new(),
        };
        match name.as_str() {
            "assert" => {
                self.at += 1;
                let condition = self.expression()?;
                let message = if self.accept(",") { Some(self.expressions()?) } else { None };
                Ok(StatementKind::Assert { condition, message })
            }
            "print" => {
                self.at += 1;
                self.print()
            }
            "pass" => {
                self.at += 1;
                Ok(StatementKind::Pass)
            }
            "if" => Err(self.error("an `if` after a semicolon")),
            "elif" | "else" => Err(self.error("an `else` without an `if`")),
            "not" => Ok(StatementKind::Compute(self.expressions()?)),
            keyword if KEYWORDS.contains(&keyword) => Err(self
                .error("a statement that code here does not have")
                .found(format!("`{keyword}`"))
                .expected("`assert`, `print`, `if`, `pass`, an assignment or an expression")),
            _ => self.assignment(name),
        }
    }

    fn assignment(&mut self, name: String) -> Result<StatementKind, ParseError> {
        let operator = match self.tokens.get(self.at + 1).map(|token| &token.kind) {
            Some(Kind::Op("=")) => None,
            Some(Kind::Op(op)) if op.len() > 1 && op.ends_with('=') && binary(&op[..op.len() - 1]).is_some() => {
                binary(&op[..op.len() - 1])
            }
            _ => return Ok(StatementKind::Compute(self.expressions()?)),
        };
        if name.is_empty() || constant(&name).is_some() {
            return Err(self.unexpected("an assignment to something that is not a name", "a name"));
        }
        self.at += 2;
        Ok(StatementKind::Assign { name, operator, value: self.expressions()? })
    }

    /// `print(a, b)`, `print a, b`.
    fn print(&mut self) -> Result<StatementKind, ParseError> {
        if self.is_end() || self.is_op(";") {
            return Ok(StatementKind::Print(Vec::new()));
        }
        let start = self.at;
        if self.accept("(") {
            let mut args = Vec::new();
            while !self.is_op(")") {
                args.push(self.expression()?);
                if !self.accept(",") {
                    break;
                }
            }
            if self.accept(")") && (self.is_end() || self.is_op(";")) {
                return Ok(StatementKind::Print(args));
            }
            // Python 2's `print (a) + b`.
            self.at = start;
        }
        let mut parts = vec![self.expression()?];
        while self.accept(",") && !self.is_end() && !self.is_op(";") {
            parts.push(self.expression()?);
        }
        Ok(StatementKind::Print(parts))
    }
}
