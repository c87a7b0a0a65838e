//! Diffs: v1 has both texts, v2 the changed files and a patch.

use std::fmt::Write;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use crate::object::{Json, object};
use crate::tree::Node;
use crate::versions::content::absolute;

/// How many equal lines surround a change.
const CONTEXT: usize = 3;
/// Texts with more lines are shown as replaced, since to compare them takes too long.
const MAX_COMPARED: usize = 10_000;

/// Converts a diff among the content of a tool call.
pub(super) fn to_v2(diff: &Node<'_>, cwd: Option<&str>) -> Json {
    let path = absolute(&diff.word("path"), cwd);
    let old = diff.text("oldText");
    let deleted = &*diff.part("deleted").json() == b"true";
    let operation = match &old {
        _ if deleted => "delete",
        None => "add",
        Some(_) => "modify",
    };
    let new = diff.text("newText").filter(|_| !deleted);
    let patch = patch(
        operation,
        &path,
        &old.unwrap_or_default(),
        &new.unwrap_or_default(),
    );
    // The texts may be parts of the file: the numbers of lines count from their first one.
    let is_partial = patch.is_some() && operation == "modify";
    let change = object! { "operation": operation, "path": path, "fileType": "text" };
    let mut made = object! {
        "type": "diff",
        "changes": vec![change],
        "_meta": diff.value("_meta"),
        "patch": patch.map(|patch| object! { "format": "git_patch", "text": patch }),
    };
    if is_partial {
        made.report("partial", true);
    }
    made
}

/// The patch from one text to the other; none when they are equal.
fn patch(operation: &str, path: &str, old: &str, new: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let path = quoted(path);
    let (mode, from, to) = match operation {
        "add" => ("new file mode 100644\n", "/dev/null", &*path),
        "delete" => ("deleted file mode 100644\n", &*path, "/dev/null"),
        _ => ("", &*path, &*path),
    };
    let mut text = format!("diff --git {path} {path}\n{mode}--- {from}\n+++ {to}\n");
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let (old, new) = (lines(old), lines(new));
    for group in group_diff_ops(compare(&old, &new), CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let from = range(first.old_range().start, last.old_range().end);
        let to = range(first.new_range().start, last.new_range().end);
        let _ = writeln!(text, "@@ -{from} +{to} @@");
        for op in &group {
            if op.tag() == DiffTag::Equal {
                write_lines(&mut text, ' ', &old[op.old_range()]);
            } else {
                write_lines(&mut text, '-', &old[op.old_range()]);
                write_lines(&mut text, '+', &new[op.new_range()]);
            }
        }
    }
    Some(text)
}

fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    match old.len() + new.len() {
        ..=MAX_COMPARED => capture_diff_slices(Algorithm::Myers, old, new),
        _ => vec![DiffOp::Replace {
            old_index: 0,
            old_len: old.len(),
            new_index: 0,
            new_len: new.len(),
        }],
    }
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

/// A path as git writes it: in quotes, if characters have to be escaped.
fn quoted(path: &str) -> String {
    let is_odd = |letter: char| letter.is_ascii_control() || matches!(letter, '"' | '\\');
    if !path.contains(is_odd) {
        return path.to_owned();
    }
    let mut text = String::from("\"");
    for letter in path.chars() {
        let _ = match letter {
            '"' | '\\' => write!(text, "\\{letter}"),
            letter if is_odd(letter) => write!(text, "\\{:03o}", u32::from(letter)),
            letter => write!(text, "{letter}"),
        };
    }
    text.push('"');
    text
}
