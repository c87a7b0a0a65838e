//! Explains why a message was changed: the rules, their reasons, and the changed places.
//!
//! The changes are those of a patch from the message before to the one after. If several rules applied, all
//! rules are listed before all changes.

use std::fmt::Write as _;

use serde_json::{Value, json};

use conversation::offline::Stage;
use dialect::{DialectNote, FiredRule, Library};
use jsonrpc::{Frame, Side, truncated};
use recording::patch::{self, Change};

/// Maximum characters of a value in the text output.
const MAX_SHOWN: usize = 160;

/// The explanation of one stage.
#[derive(Debug)]
pub struct Explanation<'s> {
    line: u64,
    from: Side,
    stage: &'s Stage,
    changes: Vec<Change>,
    library: &'s Library,
}

impl<'s> Explanation<'s> {
    /// `None` if nothing was changed and there are no notes.
    pub fn of(line: u64, from: Side, stage: &'s Stage, library: &'s Library) -> Option<Self> {
        let before = value(&stage.before);
        let changes = match &stage.after[..] {
            [one] => patch::changes(&before, &patch::between(&before, &value(one))),
            _ => Vec::new(),
        };
        let is_same = stage.after.len() == 1 && changes.is_empty();
        (!is_same || !stage.outcome.notes.is_empty()).then_some(Self {
            line,
            from,
            stage,
            changes,
            library,
        })
    }

    fn reason(&self, fired: &FiredRule) -> &str {
        let rule = self.library.rule(&fired.dialect, &fired.rule);
        rule.map_or("", |rule| &rule.why)
    }

    fn dialects(&self) -> (&str, &str) {
        let dialect = self.stage.dialect.as_str();
        let way = self.stage.way;
        way.pick((dialect, "canonical"), ("canonical", dialect))
    }

    /// Several lines of text.
    pub fn text(&self) -> String {
        let (from, to) = self.dialects();
        let before = value(&self.stage.before);
        let what = method(&before);
        let mut text = format!(
            "line {}, {what} from the {}: {from} → {to}\n",
            self.line, self.from
        );
        for fired in &self.stage.outcome.fired {
            let _ = writeln!(text, "  rule {fired}: {}", self.reason(fired));
        }
        if self.stage.outcome.fired.is_empty() && !self.changes.is_empty() {
            text.push_str("  no rule: how the dialect writes its envelope\n");
        }
        for change in &self.changes {
            for (sign, value) in [('-', &change.before), ('+', &change.after)] {
                if let Some(value) = value {
                    let _ = writeln!(text, "  {sign} {} {}", change.at, shown(value));
                }
            }
        }
        match self.stage.after.len() {
            1 => {}
            0 => text.push_str("  is not forwarded\n"),
            several => {
                let _ = writeln!(text, "  becomes {several} messages");
                for frame in &self.stage.after {
                    let _ = writeln!(text, "  + {}", shown(&value(frame)));
                }
            }
        }
        for note in &self.stage.outcome.notes {
            let _ = writeln!(text, "  {}", note_text(note));
        }
        text
    }

    /// One JSON object.
    pub fn json(&self) -> Value {
        let (from, to) = self.dialects();
        let rule =
            |fired: &FiredRule| json!({"rule": fired.to_string(), "why": self.reason(fired)});
        let note = |note: &DialectNote| json!({"what": note.what.name(), "rule": note.rule, "detail": note.detail});
        let rules: Vec<Value> = self.stage.outcome.fired.iter().map(rule).collect();
        let notes: Vec<Value> = self.stage.outcome.notes.iter().map(note).collect();
        json!({
            "line": self.line,
            "sender": self.from.name(),
            "message": method(&value(&self.stage.before)),
            "from": from,
            "to": to,
            "rules": rules,
            "changes": self.changes,
            "notes": notes,
            "messages": self.stage.after.len(),
        })
    }
}

/// A note in one line.
pub fn note_text(note: &DialectNote) -> String {
    let rule = note
        .rule
        .as_ref()
        .map_or_else(String::new, |rule| format!(" by {rule}"));
    format!("{}{rule}: {}", note.what.name(), note.detail)
}

fn value(frame: &Frame) -> Value {
    serde_json::from_slice(frame.as_bytes()).unwrap_or_default()
}

fn method(message: &Value) -> &str {
    let kind = if message.get("error").is_some() {
        "error"
    } else {
        "result"
    };
    message["method"].as_str().unwrap_or(kind)
}

fn shown(value: &Value) -> String {
    truncated(&value.to_string(), MAX_SHOWN)
}
