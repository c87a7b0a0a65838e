//! Diffs: v2 has a list of changes and a patch, v1 the text before and after.

use super::content::{fenced, text_item};
use super::patch::{self, Hunk, Section};
use crate::dialect::tree::Node;
use crate::dialect::versions::json::{add_meta, array, report, text, value};

/// The items of v1 for a diff.
pub(super) fn items(v2: &Node<'_>) -> Vec<Node<'static>> {
    let changes = array(v2, "changes").unwrap_or_default();
    let patch = value(v2, "patch").unwrap_or(Node::Absent);
    let source = text(&patch, "text").filter(|text| !text.trim().is_empty());
    let is_git = text(&patch, "format").as_deref() == Some("git_patch");
    let parsed = source.as_deref().filter(|_| is_git).and_then(patch::parse);
    let owners = parsed
        .as_deref()
        .and_then(|sections| owners(sections, &changes));
    let mut made = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        let sections = parsed.iter().flatten().zip(owners.iter().flatten());
        let own = sections.filter(|(_, owner)| **owner == Some(at));
        let hunks: Vec<&Hunk> = own.flat_map(|(section, _)| &section.hunks).collect();
        show(change, &hunks, &mut made);
    }
    if let (Some(source), None) = (source, owners) {
        made.push(text_item(&fenced("diff", &source)));
    }
    if let (Some(first), Some(meta)) = (made.first_mut(), value(v2, "_meta")) {
        add_meta(first, meta);
    }
    made
}

/// The change that each section belongs to; `None` when a text belongs to none.
fn owners(sections: &[Section], changes: &[Node<'_>]) -> Option<Vec<Option<usize>>> {
    let owner = |section: &Section| {
        let fits = |change: &Node<'_>| {
            let paths = [text(change, "path"), text(change, "oldPath")];
            let fits = paths.iter().flatten().map(|path| section.fits(path));
            fits.max().unwrap_or(0)
        };
        let best = changes
            .iter()
            .enumerate()
            .rev()
            .max_by_key(|(_, change)| fits(change));
        best.filter(|(_, change)| fits(change) > 0)
            .map(|(at, _)| at)
    };
    let owners: Vec<_> = sections.iter().map(owner).collect();
    let is_lost =
        |(section, owner): (&Section, &Option<usize>)| !section.hunks.is_empty() && owner.is_none();
    (!sections.iter().zip(&owners).any(is_lost)).then_some(owners)
}

/// The items for one change.
fn show(change: &Node<'_>, hunks: &[&Hunk], made: &mut Vec<Node<'static>>) {
    let path = text(change, "path").unwrap_or_default();
    let operation = text(change, "operation").unwrap_or_default();
    let old_path = text(change, "oldPath").unwrap_or_default();
    let joined = |side: fn(&Hunk) -> &str| hunks.iter().map(|hunk| side(hunk)).collect::<String>();
    let sentence = match &*operation {
        "add" if !hunks.is_empty() => {
            made.push(diff(&path, None, &joined(|hunk| &hunk.new)));
            return;
        }
        "delete" if !hunks.is_empty() => {
            made.push(diff(&path, Some(&joined(|hunk| &hunk.old)), ""));
            format!("Deleted {path}")
        }
        "modify" | "move" | "copy" => {
            for hunk in hunks {
                let mut item = diff(&path, Some(&hunk.old), &hunk.new);
                for (name, number) in [("oldStart", hunk.old_start), ("newStart", hunk.new_start)] {
                    report(
                        &mut item,
                        name,
                        Node::owned(number.to_string().into_bytes()),
                    );
                }
                report(&mut item, "partial", Node::raw(b"true"));
                made.push(item);
            }
            match &*operation {
                "modify" if !hunks.is_empty() => return,
                "modify" => format!("Modified {path}"),
                "move" => format!("Moved {old_path} to {path}"),
                _ => format!("Copied {old_path} to {path}"),
            }
        }
        "add" => format!("Added {path}"),
        "delete" => format!("Deleted {path}"),
        other => format!("{other} {path}"),
    };
    let kinds = [
        text(change, "fileType").filter(|kind| kind != "text"),
        text(change, "mimeType").filter(|kind| !kind.starts_with("text/")),
    ];
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    made.push(match kinds.is_empty() {
        true => text_item(&sentence),
        false => text_item(&format!("{sentence} ({})", kinds.join(", "))),
    });
}

fn diff(path: &str, old: Option<&str>, new: &str) -> Node<'static> {
    let mut members = vec![("type", Node::string("diff")), ("path", Node::string(path))];
    members.extend(old.map(|old| ("oldText", Node::string(old))));
    members.push(("newText", Node::string(new)));
    Node::object(members)
}
