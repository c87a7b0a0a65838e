//! Diffs: v1 has both texts, v2 the changed files and a patch.

use std::fmt::Write;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use super::parts::{absolute, member, put, text_of};
use crate::dialect::tree::Node;

/// How many equal lines surround a change.
const CONTEXT: usize = 3;
/// Texts with more lines that differ are shown as replaced, since to compare them takes too long.
const MAX_COMPARED: usize = 4000;

/// What happens to a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Modify,
    Delete,
}

/// Converts a diff among the content of a tool call.
pub(super) fn to_v2(diff: &mut Node<'_>, cwd: Option<&str>) {
    let path = absolute(&text_of(diff, "path").unwrap_or_default(), cwd);
    let old = text_of(diff, "oldText");
    let deleted = member(diff, "deleted").is_some_and(|flag| &*flag.json() == b"true");
    let operation = match &old {
        _ if deleted => Operation::Delete,
        None => Operation::Add,
        Some(_) => Operation::Modify,
    };
    let new = match deleted {
        true => None,
        false => text_of(diff, "newText"),
    };
    let patch = patch(
        operation,
        &path,
        &old.unwrap_or_default(),
        &new.unwrap_or_default(),
    );
    let change = Node::object(vec![
        ("operation", Node::string(operation.name())),
        ("path", Node::string(&path)),
        ("fileType", Node::string("text")),
    ]);
    let mut made = vec![
        ("type", Node::string("diff")),
        ("changes", Node::Array(vec![change])),
    ];
    let mut meta = member(diff, "_meta");
    if let Some(patch) = patch {
        let patch = vec![
            ("format", Node::string("git_patch")),
            ("text", Node::string(&patch)),
        ];
        made.push(("patch", Node::object(patch)));
        // The texts may be parts of the file: the numbers of lines count from their first one.
        if operation == Operation::Modify {
            let meta = meta.get_or_insert_with(|| Node::object(Vec::new()));
            put(meta, "acp-relay", Node::raw(br#"{"partial":true}"#));
        }
    }
    made.extend(meta.map(|meta| ("_meta", meta)));
    *diff = Node::object(made);
}

/// The patch from one text to the other; none when they are equal.
fn patch(operation: Operation, path: &str, old: &str, new: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let path = quoted(path);
    let mut text = format!("diff --git {path} {path}\n");
    text.push_str(match operation {
        Operation::Add => "new file mode 100644\n",
        Operation::Modify => "",
        Operation::Delete => "deleted file mode 100644\n",
    });
    let name = |absent| if absent { "/dev/null" } else { &*path };
    let from = name(operation == Operation::Add);
    let to = name(operation == Operation::Delete);
    let _ = write!(text, "--- {from}\n+++ {to}\n");
    hunks(&mut text, &lines(old), &lines(new));
    Some(text)
}

fn hunks(text: &mut String, old: &[&str], new: &[&str]) {
    for group in group_diff_ops(compare(old, new), CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let from = range(first.old_range().start, last.old_range().end);
        let to = range(first.new_range().start, last.new_range().end);
        let _ = writeln!(text, "@@ -{from} +{to} @@");
        for op in &group {
            let (removed, added) = match op.tag() {
                DiffTag::Equal => (' ', None),
                _ => ('-', Some('+')),
            };
            write_lines(text, removed, &old[op.old_range()]);
            if let Some(sign) = added {
                write_lines(text, sign, &new[op.new_range()]);
            }
        }
    }
}

fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let pairs = || old.iter().zip(new);
    let before = pairs().take_while(|(one, two)| one == two).count();
    let (rest, fresh) = (&old[before..], &new[before..]);
    let pairs = rest.iter().rev().zip(fresh.iter().rev());
    let after = pairs.take_while(|(one, two)| one == two).count();
    let (old_len, new_len) = (rest.len() - after, fresh.len() - after);
    if old_len + new_len <= MAX_COMPARED {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let equal = |old_index, new_index, len| DiffOp::Equal {
        old_index,
        new_index,
        len,
    };
    let replaced = DiffOp::Replace {
        old_index: before,
        old_len,
        new_index: before,
        new_len,
    };
    let mut ops = vec![
        equal(0, 0, before),
        replaced,
        equal(before + old_len, before + new_len, after),
    ];
    ops.retain(|op| !matches!(op, DiffOp::Equal { len: 0, .. }));
    ops
}

/// A range of lines in the header of a hunk.
fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        len => format!("{},{len}", start + 1),
    }
}

fn write_lines(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// A path as git writes it: in quotes, if characters have to be escaped.
fn quoted(path: &str) -> String {
    let is_odd = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7f);
    if !path.as_bytes().iter().any(|byte| is_odd(byte)) {
        return path.to_owned();
    }
    let mut text = String::from("\"");
    for character in path.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\0'..='\x1f' | '\x7f' => {
                let _ = write!(text, "\\{:03o}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
    text
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Modify => "modify",
            Self::Delete => "delete",
        }
    }
}
