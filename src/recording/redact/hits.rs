//! The reasons for redaction, and how often each applied to one text.

/// The kind of rule by which something was redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitKind {
    /// Its place: variables and headers, authentication, a value after a suggestive name.
    Place,
    /// A place that the user named.
    Pointer,
    /// It has the shape of a secret.
    Shape,
    /// It is text, and the mode keeps none.
    Text,
}

/// The number of redactions by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits([u64; HitKind::ALL.len()]);

impl HitKind {
    /// All kinds, in numeric order.
    pub const ALL: [Self; 4] = [Self::Place, Self::Pointer, Self::Shape, Self::Text];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Pointer => "pointer",
            Self::Shape => "shape",
            Self::Text => "text",
        }
    }
}

impl Hits {
    /// One redaction of that kind.
    pub(super) fn single(rule: HitKind) -> Self {
        let mut hits = Self::default();
        hits.add_one(rule);
        hits
    }

    /// The number of redactions of that kind.
    #[must_use]
    pub const fn count(&self, rule: HitKind) -> u64 {
        self.0[rule as usize]
    }

    /// Counts one more.
    pub const fn add_one(&mut self, rule: HitKind) {
        self.0[rule as usize] += 1;
    }

    /// Adds other counts.
    pub fn add(&mut self, others: Self) {
        for (own, other) in self.0.iter_mut().zip(others.0) {
            *own += other;
        }
    }
}
