//! Statements and expressions.

use std::ops::Range;

use super::Value;

/// Deepest nesting of expressions, operators in a row counted; also of blocks.
pub(super) const MAX_DEPTH: u16 = 64;

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
pub(super) const KEYWORDS: &[&str] = &[
    "and", "assert", "class", "def", "del", "elif", "else", "except", "for", "from", "global", "if", "import", "in",
    "is", "lambda", "not", "or", "pass", "print", "raise", "return", "try", "while", "with", "yield",
];

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
    pub(super) depth: u16,
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
