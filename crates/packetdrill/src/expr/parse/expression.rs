//! Expressions, from the loosest operators to the tightest.

use crate::error::ParseError;
use crate::expr::Value;
use crate::expr::syntax::Statement;
use crate::expr::syntax::StatementKind;
use crate::expr::syntax::{Binary, Comparison, FUNCTIONS, KEYWORDS, MAX_DEPTH, Node, NodeKind, Unary};
use std::ops::Range;

use crate::expr::token::{CodeToken, Kind};

/// Reads the tokens of one line.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [CodeToken],
    pub(super) at: usize,
    /// Calls of `choice` that are open.
    pub(super) depth: u16,
}

impl Reader<'_> {
    pub(super) fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    pub(super) fn is_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn is_op(&self, op: &str) -> bool {
        matches!(self.peek(), Some(Kind::Op(found)) if *found == op)
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Kind::Name(found)) if found == name)
    }

    pub(super) fn accept(&mut self, op: &str) -> bool {
        let is = self.is_op(op);
        self.at += usize::from(is);
        is
    }

    pub(super) fn accept_name(&mut self, name: &str) -> bool {
        let is = self.is_name(name);
        self.at += usize::from(is);
        is
    }

    pub(super) fn place(&self) -> Range<usize> {
        match (self.tokens.get(self.at), self.tokens.last()) {
            (Some(token), _) => token.place.clone(),
            (None, Some(last)) => last.place.end..last.place.end,
            (None, None) => 0..0,
        }
    }

    /// The line of the next token.
    pub(super) fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    pub(super) fn error(&self, title: &str) -> ParseError {
        ParseError::at(self.text, self.place(), title)
    }

    pub(super) fn unexpected(&self, title: &str, expected: &str) -> ParseError {
        let found = match self.tokens.get(self.at) {
            Some(token) => format!("`{:.40}`", &self.text[token.place.clone()]),
            None => "the end of the line".to_owned(),
        };
        self.error(title).expected(expected).found(found)
    }

    pub(super) fn expect(&mut self, op: &str) -> Result<(), ParseError> {
        if self.accept(op) {
            return Ok(());
        }
        Err(self.unexpected("code that cannot be read", &format!("`{op}`")))
    }

    /// Statements with semicolons between them, up to the end of the line.
    pub(super) fn simple_statements(&mut self, body: &mut Vec<Statement>) -> Result<(), ParseError> {
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

    pub(super) fn simple_statement(&mut self) -> Result<StatementKind, ParseError> {
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

    pub(super) fn assignment(&mut self, name: String) -> Result<StatementKind, ParseError> {
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
    pub(super) fn print(&mut self) -> Result<StatementKind, ParseError> {
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

impl Reader<'_> {
    /// One expression, or several with commas: a tuple.
    pub(super) fn expressions(&mut self) -> Result<Node, ParseError> {
        let start = self.place().start;
        let first = self.expression()?;
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.accept(",") && !self.is_end() && !self.is_op(";") && !self.is_op(")") {
            parts.push(self.expression()?);
        }
        self.node(start, NodeKind::Tuple(parts))
    }

    /// An expression that ends before the current token.
    fn node(&self, start: usize, kind: NodeKind) -> Result<Node, ParseError> {
        let depth = 1 + match &kind {
            NodeKind::Literal(_) | NodeKind::Name(_) => 0,
            NodeKind::Unary(_, a) => a.depth,
            NodeKind::Binary(_, a, b) => a.depth.max(b.depth),
            NodeKind::Compare(a, rest) => rest.iter().map(|(_, b)| b.depth).fold(a.depth, u16::max),
            NodeKind::And(all) | NodeKind::Or(all) | NodeKind::Call(_, all) | NodeKind::Tuple(all) => {
                all.iter().map(|node| node.depth).max().unwrap_or(0)
            }
            NodeKind::Choice(all) => all.iter().map(|node| node.depth).max().unwrap_or(0),
        };
        let end = self.at.checked_sub(1).map_or(start, |last| self.tokens[last].place.end);
        let place = start..end.max(start);
        if depth > MAX_DEPTH {
            return Err(ParseError::at(self.text, place, "an expression that is too long or nested too deep"));
        }
        Ok(Node { kind, place, depth })
    }

    /// `a if condition else b`, and all that binds tighter.
    pub(super) fn expression(&mut self) -> Result<Node, ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("an expression nested too deep"));
        }
        let start = self.place().start;
        let yes = self.any()?;
        let node = if self.accept_name("if") {
            let condition = self.any()?;
            if !self.accept_name("else") {
                return Err(self.unexpected("a choice without its other side", "`else`"));
            }
            let no = self.expression()?;
            self.node(start, NodeKind::Choice(Box::new([condition, yes, no])))?
        } else {
            yes
        };
        self.depth -= 1;
        Ok(node)
    }

    /// `a or b`
    fn any(&mut self) -> Result<Node, ParseError> {
        let start = self.place().start;
        let first = self.all()?;
        if !self.is_name("or") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.accept_name("or") {
            parts.push(self.all()?);
        }
        self.node(start, NodeKind::Or(parts))
    }

    /// `a and b`
    fn all(&mut self) -> Result<Node, ParseError> {
        let start = self.place().start;
        let first = self.negation()?;
        if !self.is_name("and") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.accept_name("and") {
            parts.push(self.negation()?);
        }
        self.node(start, NodeKind::And(parts))
    }

    /// `not a`
    fn negation(&mut self) -> Result<Node, ParseError> {
        let start = self.place().start;
        let mut count = 0;
        while self.accept_name("not") {
            count += 1;
        }
        let mut node = self.comparison()?;
        for _ in 0..count {
            node = self.node(start, NodeKind::Unary(Unary::Not, Box::new(node)))?;
        }
        Ok(node)
    }

    /// `a < b <= c`
    fn comparison(&mut self) -> Result<Node, ParseError> {
        let start = self.place().start;
        let first = self.operators(0)?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparison_operator() {
            rest.push((comparison, self.operators(0)?));
        }
        if rest.is_empty() { Ok(first) } else { self.node(start, NodeKind::Compare(Box::new(first), rest)) }
    }

    fn comparison_operator(&mut self) -> Option<Comparison> {
        let second = match self.tokens.get(self.at + 1).map(|token| &token.kind) {
            Some(Kind::Name(name)) => name.as_str(),
            _ => "",
        };
        let (comparison, tokens) = match self.peek()? {
            Kind::Op("==") => (Comparison::Equal, 1),
            Kind::Op("!=") => (Comparison::NotEqual, 1),
            Kind::Op("<") => (Comparison::Less, 1),
            Kind::Op("<=") => (Comparison::LessEqual, 1),
            Kind::Op(">") => (Comparison::Greater, 1),
            Kind::Op(">=") => (Comparison::GreaterEqual, 1),
            Kind::Name(name) => match (name.as_str(), second) {
                ("in", _) => (Comparison::In, 1),
                ("not", "in") => (Comparison::NotIn, 2),
                ("is", "not") => (Comparison::IsNot, 2),
                ("is", _) => (Comparison::Is, 1),
                _ => return None,
            },
            _ => return None,
        };
        self.at += tokens;
        Some(comparison)
    }

    /// Operators that bind at least as tight as `least`, from the left.
    fn operators(&mut self, least: u8) -> Result<Node, ParseError> {
        let start = self.place().start;
        let mut left = self.unary()?;
        while let Some(Kind::Op(op)) = self.peek() {
            let Some(operator) = binary(op).filter(|&operator| operator != Binary::Power) else { break };
            let level = precedence(operator);
            if level < least {
                break;
            }
            self.at += 1;
            let right = self.operators(level + 1)?;
            left = self.node(start, NodeKind::Binary(operator, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    /// `-a`, `+a`, `~a`
    fn unary(&mut self) -> Result<Node, ParseError> {
        let start = self.place().start;
        let mut operators = Vec::new();
        loop {
            if self.accept("-") {
                operators.push(Unary::Minus);
            } else if self.accept("+") {
                operators.push(Unary::Plus);
            } else if self.accept("~") {
                operators.push(Unary::Invert);
            } else {
                break;
            }
            if operators.len() > usize::from(MAX_DEPTH) {
                return Err(self.error("an expression that is too long"));
            }
        }
        let mut node = self.power()?;
        while let Some(operator) = operators.pop() {
            node = self.node(start, NodeKind::Unary(operator, Box::new(node)))?;
        }
        Ok(node)
    }

    /// `a ** b`, from the right; the exponent may have a sign.
    fn power(&mut self) -> Result<Node, ParseError> {
        let start = self.place().start;
        let base = self.atom()?;
        if !self.accept("**") {
            return Ok(base);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("an expression nested too deep"));
        }
        let exponent = self.unary()?;
        self.depth -= 1;
        self.node(start, NodeKind::Binary(Binary::Power, Box::new(base), Box::new(exponent)))
    }

    fn atom(&mut self) -> Result<Node, ParseError> {
        let start = self.place().start;
        let Some(kind) = self.peek().cloned() else {
            return Err(self.unexpected("code that cannot be read", "a value"));
        };
        match kind {
            Kind::Int(int) => self.literal(Value::Int(int)),
            Kind::Float(float) => self.literal(Value::Float(float)),
            Kind::Text(mut text) => {
                while let Some(Kind::Text(more)) = self.tokens.get(self.at + 1).map(|token| &token.kind) {
                    text.push_str(more);
                    self.at += 1;
                }
                self.at += 1;
                self.node(start, NodeKind::Literal(Value::Text(text)))
            }
            Kind::Name(name) if constant(&name).is_some() => self.literal(constant(&name).unwrap_or(Value::None)),
            Kind::Name(name) if KEYWORDS.contains(&name.as_str()) => {
                Err(self.unexpected("code that cannot be read", "a value"))
            }
            Kind::Name(name) => {
                self.at += 1;
                if self.is_op("(") { self.call(start, name) } else { self.node(start, NodeKind::Name(name)) }
            }
            Kind::Op(open @ ("(" | "[")) => {
                let close = if open == "(" { ")" } else { "]" };
                self.at += 1;
                let mut parts = Vec::new();
                let mut comma = false;
                while !self.is_op(close) {
                    parts.push(self.expression()?);
                    comma = self.accept(",");
                    if !comma {
                        break;
                    }
                }
                self.expect(close)?;
                match <[Node; 1]>::try_from(parts) {
                    Ok([node]) if open == "(" && !comma => {
                        Ok(Node { place: start..self.tokens[self.at - 1].place.end, ..node })
                    }
                    Ok([node]) => self.node(start, NodeKind::Tuple(vec![node])),
                    Err(parts) => self.node(start, NodeKind::Tuple(parts)),
                }
            }
            Kind::Op(_) => Err(self.unexpected("code that cannot be read", "a value")),
        }
    }

    fn literal(&mut self, value: Value) -> Result<Node, ParseError> {
        let start = self.place().start;
        self.at += 1;
        self.node(start, NodeKind::Literal(value))
    }

    fn call(&mut self, start: usize, name: String) -> Result<Node, ParseError> {
        let Some(&(_, least, most)) = FUNCTIONS.iter().find(|(function, ..)| *function == name) else {
            let known: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
            let place = start..start + name.len();
            return Err(ParseError::at(self.text, place, "a function that code here does not have")
                .found(format!("`{name:.40}`"))
                .expected(format!("one of {}", known.join(", "))));
        };
        self.at += 1;
        let mut args = Vec::new();
        while !self.is_op(")") {
            args.push(self.expression()?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        if !(least..=most).contains(&args.len()) {
            let end = self.tokens[self.at - 1].place.end;
            return Err(ParseError::at(self.text, start..end, format!("`{name}` with {} arguments", args.len())));
        }
        self.node(start, NodeKind::Call(name, args))
    }
}

pub(super) fn constant(name: &str) -> Option<Value> {
    match name {
        "True" => Some(Value::Bool(true)),
        "False" => Some(Value::Bool(false)),
        "None" => Some(Value::None),
        _ => None,
    }
}

pub(super) fn binary(op: &str) -> Option<Binary> {
    Some(match op {
        "|" => Binary::Or,
        "^" => Binary::Xor,
        "&" => Binary::And,
        "<<" => Binary::Left,
        ">>" => Binary::Right,
        "+" => Binary::Add,
        "-" => Binary::Subtract,
        "*" => Binary::Multiply,
        "/" => Binary::Divide,
        "//" => Binary::Floor,
        "%" => Binary::Modulo,
        "**" => Binary::Power,
        _ => return None,
    })
}

fn precedence(operator: Binary) -> u8 {
    match operator {
        Binary::Or => 0,
        Binary::Xor => 1,
        Binary::And => 2,
        Binary::Left | Binary::Right => 3,
        Binary::Add | Binary::Subtract => 4,
        Binary::Multiply | Binary::Divide | Binary::Floor | Binary::Modulo => 5,
        Binary::Power => 6,
    }
}
