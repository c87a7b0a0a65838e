//! A filter as a tree.

use super::field::Field;
use super::glob::Glob;
use super::lexer::Operator;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    /// The empty filter.
    All,
    Every(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Term(Term),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Text(Field, Glob),
    Word(Field, &'static str),
    Number(Field, Bound),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) operator: Operator,
    pub(super) value: f64,
}

impl Expr {
    pub(super) fn uses(&self, field: Field) -> bool {
        match self {
            Self::All => false,
            Self::Every(parts) | Self::Any(parts) => parts.iter().any(|part| part.uses(field)),
            Self::Not(inner) => inner.uses(field),
            Self::Term(Term::Text(own, _) | Term::Word(own, _) | Term::Number(own, _)) => {
                *own == field
            }
        }
    }
}

impl Bound {
    pub(super) fn contains(self, value: f64) -> bool {
        match self.operator {
            Operator::Is => value == self.value,
            Operator::Less => value < self.value,
            Operator::AtMost => value <= self.value,
            Operator::More => value > self.value,
            Operator::AtLeast => value >= self.value,
        }
    }
}
