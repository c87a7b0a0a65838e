//! A match of `inspect grep`.

use serde_json::{Value, json};

use super::paint::Paint;
use super::units::{excerpt, timestamp};

/// A match of the pattern.
pub(super) struct Hit<'a> {
    pub(super) n: u64,
    pub(super) t: u64,
    pub(super) pointer: &'a str,
    pub(super) text: &'a str,
    /// The number of chunks that the text spans.
    pub(super) chunks: u64,
}

impl Hit<'_> {
    pub(super) fn json(&self, file: &str) -> Value {
        let mut hit = json!({
            "file": file,
            "n": self.n,
            "t": self.t as f64 / 1e6,
            "pointer": self.pointer,
            "text": self.text,
        });
        if self.chunks > 1 {
            hit["chunks"] = self.chunks.into();
        }
        hit
    }

    pub(super) fn line(&self, paint: Paint) -> String {
        let (n, at) = (self.n, timestamp(self.t));
        let pointer = excerpt(self.pointer.as_bytes());
        let chunks = match self.chunks {
            1 => String::new(),
            count => format!(" ×{count}"),
        };
        let text = excerpt(self.text.as_bytes());
        let line = format!("{n:>6} {at:>12} {pointer}{chunks}: {text}");
        paint.line(20 + pointer.chars().count(), None, &line)
    }
}
