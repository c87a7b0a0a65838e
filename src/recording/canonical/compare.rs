//! Compares two conversations.
//!
//! Each sequence (the messages of one side in one session) is aligned by itself.

use std::collections::HashMap;
use std::hash::Hash;

use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::steps::Step;
use crate::patch;
use jsonrpc::{Kind, Side};

/// The messages of one side in one session, or outside of all sessions; of unordered updates (see
/// [`Step::unordered`]) also their kind.
type Sequence = (Side, Option<String>, Option<String>);

/// A difference of two conversations; steps are given by index.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// Only the first one has this step.
    Missing(usize),
    /// Only the second one has this step.
    Extra(usize),
    /// Both have a step of this kind and method here, with different contents.
    Changed {
        /// The step of the first one.
        left: usize,
        /// The step of the second one.
        right: usize,
        /// A patch (RFC 6902) from [`Step::json`] of the first to that of the second.
        patch: Value,
    },
}

/// A step of one conversation or of both, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The step of the first one; `None` if only the second one has it.
    pub left: Option<usize>,
    /// The step of the second one; `None` if only the first one has it.
    pub right: Option<usize>,
    /// Both have it with the same contents.
    pub same: bool,
}

/// The differences of `right` from `left`; none when both are the same conversation. Ordered by the
/// steps of the first one, where they have one.
#[must_use]
pub fn compare(left: &[Step], right: &[Step]) -> Vec<Difference> {
    let pairs = pair_up(left, right).into_iter();
    let difference = |pair: Pair| match (pair.left, pair.right) {
        _ if pair.same => None,
        (Some(left), None) => Some(Difference::Missing(left)),
        (None, Some(right)) => Some(Difference::Extra(right)),
        (Some(i), Some(j)) => Some(Difference::Changed {
            left: i,
            right: j,
            patch: patch::between(&left.get(i)?.json(), &right.get(j)?.json()),
        }),
        (None, None) => None,
    };
    let mut found: Vec<_> = pairs.filter_map(difference).collect();
    found.sort_by_key(|difference| match difference {
        Difference::Missing(at) | Difference::Changed { left: at, .. } => (*at, 0),
        Difference::Extra(at) => (*at, 1),
    });
    found
}

/// All steps of both, in one order: that of the first one; what only the second one has follows the
/// step of both that it follows there.
#[must_use]
pub fn side_by_side(left: &[Step], right: &[Step]) -> Vec<Pair> {
    let mut pairs = pair_up(left, right);
    let mut partners = vec![None; right.len()];
    for pair in &pairs {
        if let Some(partner) = pair.right.and_then(|right| partners.get_mut(right)) {
            *partner = pair.left;
        }
    }
    // Of each step of the second one, the last of the first one at or before it.
    let mut last = None;
    for partner in &mut partners {
        last = last.max(*partner);
        *partner = last;
    }
    let place = |pair: &Pair| match (pair.left, pair.right) {
        (Some(left), _) => (Some(left), None),
        (None, Some(right)) => (partners.get(right).copied().flatten(), Some(right)),
        (None, None) => (None, None),
    };
    pairs.sort_by_key(place);
    pairs
}

/// All steps of both, sequence by sequence.
#[expect(clippy::indexing_slicing, reason = "indices it has made")]
fn pair_up(left: &[Step], right: &[Step]) -> Vec<Pair> {
    let mut sequences: Vec<[Vec<usize>; 2]> = Vec::new();
    let mut known: HashMap<Sequence, usize> = HashMap::new();
    let mut different = HashMap::new();
    // Of each step, the number of its contents.
    let mut numbers = [Vec::new(), Vec::new()];
    for (which, steps) in [left, right].into_iter().enumerate() {
        for (at, step) in steps.iter().enumerate() {
            let update = step.update().filter(|_| step.unordered);
            let sequence = (step.from, step.session.clone(), update.map(str::to_owned));
            let index = *known.entry(sequence).or_insert_with(|| {
                sequences.push(Default::default());
                sequences.len() - 1
            });
            sequences[index][which].push(at);
            let next = different.len();
            let number = different.entry(contents(step)).or_insert(next);
            numbers[which].push(*number);
        }
    }
    let mut found = Vec::new();
    for [a, b] in &sequences {
        let of = |which: usize, steps: &[usize]| -> Vec<usize> {
            steps.iter().map(|at| numbers[which][*at]).collect()
        };
        for op in capture_diff_slices(Algorithm::Myers, &of(0, a), &of(1, b)) {
            let (a, b) = (&a[op.old_range()], &b[op.new_range()]);
            if matches!(op, DiffOp::Equal { .. }) {
                let both = a.iter().zip(b);
                found.extend(both.map(|(i, j)| Pair::new(Some(*i), Some(*j), true)));
            } else {
                pair_changed(left, right, a, b, &mut found);
            }
        }
    }
    found
}

/// Pairs the steps between two common ones: steps of the same kind count as changed.
#[expect(clippy::indexing_slicing, reason = "indices it has made")]
fn pair_changed(left: &[Step], right: &[Step], a: &[usize], b: &[usize], found: &mut Vec<Pair>) {
    fn kind(step: &Step) -> (Option<Kind>, &str, Option<&str>) {
        (step.kind, &step.method, step.update())
    }
    let mut rest = b;
    for &i in a {
        let same_kind = |j: &usize| kind(&left[i]) == kind(&right[*j]);
        let Some(ahead) = rest.iter().position(same_kind) else {
            found.push(Pair::new(Some(i), None, false));
            continue;
        };
        let (skipped, from) = rest.split_at(ahead);
        found.extend(skipped.iter().map(|j| Pair::new(None, Some(*j), false)));
        found.push(Pair::new(Some(i), Some(from[0]), false));
        rest = &from[1..];
    }
    found.extend(rest.iter().map(|j| Pair::new(None, Some(*j), false)));
}

impl Pair {
    const fn new(left: Option<usize>, right: Option<usize>, same: bool) -> Self {
        Self { left, right, same }
    }
}

/// What two steps must have in common to be the same.
fn contents(step: &Step) -> impl Eq + Hash {
    let session = step.session.as_deref();
    (
        step.from,
        step.kind,
        &*step.method,
        session,
        step.number,
        &step.body,
    )
}
