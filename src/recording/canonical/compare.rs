//! Compares two conversations.
//!
//! Each sequence (the messages of one side in one session) is aligned by itself.

use std::collections::HashMap;

use serde_json::Value;

use super::steps::Step;
use crate::jsonrpc::Side;
use crate::recording::patch;

/// Limit of the pairs of steps for an exact alignment. Longer sequences are compared in order.
const MAX_PAIRS: usize = 16 << 20;

/// The messages of one side in one session, or outside of all sessions; of unordered updates (see
/// [`Step::unordered`]) also their kind.
type Sequence = (Side, Option<String>, Option<String>);

/// A difference of two conversations; steps are given by index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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

/// The differences of `right` from `left`; none when both are the same conversation. Ordered by the
/// steps of the first one, where they have one.
#[must_use]
pub fn compare(left: &[Step], right: &[Step]) -> Vec<Difference> {
    let mut sequences: Vec<(Sequence, [Vec<usize>; 2])> = Vec::new();
    let mut known: HashMap<Sequence, usize> = HashMap::new();
    for (which, steps) in [left, right].into_iter().enumerate() {
        for (at, step) in steps.iter().enumerate() {
            let update = step.update().filter(|_| step.unordered);
            let sequence = (step.from, step.session.clone(), update.map(str::to_owned));
            let index = *known.entry(sequence.clone()).or_insert_with(|| {
                sequences.push((sequence, Default::default()));
                sequences.len() - 1
            });
            sequences[index].1[which].push(at);
        }
    }
    let mut found = Vec::new();
    for (_, [a, b]) in &sequences {
        align(left, right, a, b, &mut found);
    }
    found.sort_by_key(|difference| match difference {
        Difference::Missing(at) | Difference::Changed { left: at, .. } => (*at, 0),
        Difference::Extra(at) => (*at, 1),
    });
    found
}

/// Aligns one sequence.
fn align(left: &[Step], right: &[Step], a: &[usize], b: &[usize], found: &mut Vec<Difference>) {
    let same = |i: usize, j: usize| left[i].is_same(&right[j]);
    let head = a.iter().zip(b).take_while(|(i, j)| same(**i, **j)).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = (a.iter().rev().zip(b.iter().rev()))
        .take_while(|(i, j)| same(**i, **j))
        .count();
    let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
    let mut done = (0, 0);
    for (i, j) in common_steps(a, b, same)
        .into_iter()
        .chain([(a.len(), b.len())])
    {
        compare_gap(left, right, &a[done.0..i], &b[done.1..j], found);
        done = (i + 1, j + 1);
    }
}

/// The longest common subsequence, as pairs of indices.
fn common_steps(
    a: &[usize],
    b: &[usize],
    same: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    if a.len().saturating_mul(b.len()) > MAX_PAIRS {
        let both = a.iter().zip(b).enumerate();
        pairs.extend(
            both.filter(|(_, (i, j))| same(**i, **j))
                .map(|(at, _)| (at, at)),
        );
        return pairs;
    }
    let width = b.len() + 1;
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            let at = i * width + j;
            longest[at] = if same(a[i], b[j]) {
                longest[at + width + 1] + 1
            } else {
                longest[at + width].max(longest[at + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let at = i * width + j;
        if same(a[i], b[j]) {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[at + width] >= longest[at + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// Compares the steps between two common ones: steps of the same kind count as changed.
fn compare_gap(
    left: &[Step],
    right: &[Step],
    a: &[usize],
    b: &[usize],
    found: &mut Vec<Difference>,
) {
    let kind = |step: &Step| {
        let update = step.update().map(str::to_owned);
        (step.kind, step.method.clone(), update)
    };
    let mut rest = b.iter().copied().peekable();
    let mut skipped = Vec::new();
    for &i in a {
        let ahead = rest.clone().position(|j| kind(&left[i]) == kind(&right[j]));
        let Some(ahead) = ahead else {
            found.push(Difference::Missing(i));
            continue;
        };
        skipped.extend(rest.by_ref().take(ahead));
        if let Some(j) = rest.next() {
            let patch = patch::between(&left[i].json(), &right[j].json());
            found.push(Difference::Changed {
                left: i,
                right: j,
                patch,
            });
        }
    }
    found.extend(skipped.into_iter().chain(rest).map(Difference::Extra));
}
