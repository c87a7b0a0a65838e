//! Why something is kept out, for those who count it.
//!
//! Not here: counting over more than one text (see `observe::recorder`).

/// Why something is kept out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Where it stands: among variables and headers, in what authenticates, after a telling name.
    Place,
    /// The user has named the place.
    Pointer,
    /// It looks like a secret.
    Shape,
    /// It is text, and none is to be kept.
    Text,
}

/// How often, by rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits([u64; Rule::ALL.len()]);

impl Rule {
    /// All of them, in the order of their numbers.
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
    /// That one, once.
    pub(super) fn of_one(rule: Rule) -> Self {
        let mut hits = Self::default();
        hits.hit(rule);
        hits
    }

    /// How often that one.
    #[must_use]
    pub const fn of(&self, rule: Rule) -> u64 {
        self.0[rule as usize]
    }

    /// Once more.
    pub const fn hit(&mut self, rule: Rule) {
        self.0[rule as usize] += 1;
    }

    /// And these.
    pub fn add(&mut self, others: Self) {
        for (own, other) in self.0.iter_mut().zip(others.0) {
            *own += other;
        }
    }
}
