//! Finds secrets in a text that arrives in pieces, where no single piece shows the secret.
//!
//! A piece is judged together with the end of the text before it. A possible secret at the end of
//! a piece is redacted before its shape is complete, and so is its continuation in the next pieces.
//! Earlier pieces are written already and may show its beginning: less than twelve characters,
//! because that many suffice (see `random`). Texts are judged in their JSON spelling.

use std::ops::Range;

use smallvec::SmallVec;

use super::inside::{IN_PEM, Inside};
use super::scan::{find_in_part, has_keyword};
use super::urls::open_host;

/// Bytes of a text that are remembered: a suggestive name, the separator, and as much of the secret
/// as is needed to recognise it; or the line before a possible name.
const MAX_TAIL: usize = 256;

/// Bytes at the end of a piece that are searched for a host that continues in the next one.
const HOST_TAIL: usize = 64;

/// Bytes on each side of the border of two pieces that can contain a word across it.
pub(super) const BORDER: usize = 24;

/// The state of a text at its current end.
#[derive(Debug, Default)]
pub(super) struct TextStream {
    tail: Vec<u8>,
    /// The tail contains something that announces a secret.
    announced: bool,
    inside: Option<Inside>,
    /// The beginning of the last piece.
    head: Vec<u8>,
}

impl TextStream {
    /// Handles the next piece if nothing in or before it announces a secret; returns whether it
    /// did. No word lies in the piece.
    pub(super) fn skip_clean(&mut self, piece: &[u8]) -> bool {
        let end = &piece[piece.len().saturating_sub(HOST_TAIL)..];
        let passes = self.inside.is_none()
            && !self.announced
            && memchr::memchr(b':', end).is_none_or(|_| open_host(end).is_none())
            && !self.word_may_cross(piece);
        if passes {
            self.append_tail(piece);
        }
        passes
    }

    /// Restarts the text if the next piece is cumulative: it begins as the last one did.
    pub(super) fn restart(&mut self, piece: &[u8]) {
        if !self.head.is_empty() && piece.starts_with(&self.head) {
            self.tail.clear();
            (self.announced, self.inside) = (false, None);
        }
        self.head.clear();
        self.head
            .extend_from_slice(&piece[..piece.len().min(BORDER)]);
    }

    /// The secrets in the next piece, in order.
    pub(super) fn find(&mut self, piece: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        // A secret may also begin with the piece, whatever was before it, because a reader may see
        // the piece alone.
        let alone = find_in_part(piece, self.inside.is_some());
        if let Some(inside) = self.inside.take() {
            let end = inside.end(&self.tail, piece);
            from = end.unwrap_or(piece.len());
            if from > 0 {
                found.push(0..from);
            }
            if end.is_none() && !alone.iter().any(|(_, inside)| *inside == Some(IN_PEM)) {
                self.inside = Some(match inside {
                    Inside::Pem(left) => Inside::Pem(left.saturating_sub(piece.len())),
                    inside => inside,
                });
                self.append_tail(piece);
                return found;
            }
            self.tail.clear();
        }
        let known = self.tail.len();
        self.tail.extend_from_slice(&piece[from..]);
        let end = self.tail.len();
        let mut oldest = end.saturating_sub(MAX_TAIL);
        for (secret, inside) in find_in_part(&self.tail, true) {
            if secret.end == end {
                self.inside = inside;
            }
            if inside == Some(IN_PEM) {
                // An end marker before the beginning does not count.
                oldest = oldest.max(secret.start);
            }
            if secret.end > known {
                found.push(secret.start.max(known) - known + from..secret.end - known + from);
            }
        }
        for (secret, inside) in alone {
            if secret.end == piece.len() && self.inside.is_none() {
                self.inside = inside;
            }
            found.push(secret);
        }
        found.sort_by_key(|secret| secret.start);
        found.dedup_by(|next, last| {
            let overlaps = next.start < last.end;
            if overlaps {
                last.end = last.end.max(next.end);
            }
            overlaps
        });
        self.tail.drain(..oldest);
        // Release the memory of a large piece.
        self.tail.shrink_to(2 * MAX_TAIL);
        self.announced = has_keyword(&self.tail) || open_host(&self.tail).is_some();
        found
    }

    /// Appends the end of a piece to the tail.
    fn append_tail(&mut self, piece: &[u8]) {
        let end = &piece[piece.len().saturating_sub(MAX_TAIL)..];
        let old = self.tail.len().saturating_sub(MAX_TAIL - end.len());
        self.tail.drain(..old);
        self.tail.extend_from_slice(end);
    }

    /// Whether a word may lie across the border of the tail and a piece.
    fn word_may_cross(&self, piece: &[u8]) -> bool {
        let (Some(last), Some(first)) = (self.tail.last(), piece.first()) else {
            return false;
        };
        let joins = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.=~\":/".contains(byte);
        let option = *last == b' ' && *first == b'-';
        let escape = matches!(self.tail[..], [.., before, b'\\', _] if before != b'\\');
        if !(option || joins(last) && !escape && joins(first)) {
            return false;
        }
        let before = &self.tail[self.tail.len().saturating_sub(BORDER)..];
        let behind = &piece[..piece.len().min(BORDER)];
        let mut border = SmallVec::<[u8; 2 * BORDER + 1]>::from_slice(b" ");
        border.extend_from_slice(before);
        border.extend_from_slice(behind);
        has_keyword(&border) || border.windows(2).any(|pair| pair == b"//")
    }
}
