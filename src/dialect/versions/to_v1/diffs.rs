//! Diffs: v2 has a list of changes and a patch, v1 the text before and after.

use super::patch::{self, Hunk, Section};
use crate::object::{Json, object};
use crate::tree::Node;
use crate::versions::content::{fenced, text_item};

/// The items of v1 for a diff.
pub(super) fn items(v2: &Node<'_>) -> Vec<Json> {
    let changes = v2.list("changes");
    let patch = v2.part("patch");
    let source = patch.text("text").filter(|text| !text.trim().is_empty());
    let is_git = patch.says("format", "git_patch");
    let git = source.as_deref().filter(|_| is_git);
    let sections = git.and_then(patch::parse);
    let owners = sections.as_deref().and_then(|all| owners(all, &changes));
    let mut made = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        let sections = sections.iter().flatten().zip(owners.iter().flatten());
        let own = sections.filter(|(_, owner)| **owner == Some(at));
        let hunks: Vec<&Hunk> = own.flat_map(|(section, _)| &section.hunks).collect();
        show(change, &hunks, &mut made);
    }
    if let (Some(source), None) = (source, owners) {
        made.push(text_item(&fenced("diff", &source)));
    }
    if let Some(first) = made.first_mut() {
        first.add_meta(v2.value("_meta"));
    }
    made
}

/// The change that each section belongs to; `None` when a text belongs to none.
fn owners(sections: &[Section], changes: &[Node<'_>]) -> Option<Vec<Option<usize>>> {
    let paths = |change: &Node<'_>| [change.text("path"), change.text("oldPath")];
    let paths: Vec<_> = changes.iter().map(paths).collect();
    let owner = |section: &Section| {
        let fits = |paths: &[Option<String>; 2]| {
            let fits = paths.iter().flatten().map(|path| section.fits(path));
            fits.max().unwrap_or(0)
        };
        let graded = paths.iter().map(fits).enumerate().rev();
        let best = graded.max_by_key(|(_, fit)| *fit);
        best.filter(|(_, fit)| *fit > 0).map(|(at, _)| at)
    };
    let owners: Vec<_> = sections.iter().map(owner).collect();
    let mut all = sections.iter().zip(&owners);
    let is_lost = all.any(|(section, owner)| !section.hunks.is_empty() && owner.is_none());
    (!is_lost).then_some(owners)
}

/// The items for one change.
fn show(change: &Node<'_>, hunks: &[&Hunk], made: &mut Vec<Json>) {
    let path = change.word("path");
    let operation = change.word("operation");
    let old_path = change.word("oldPath");
    let joined = |side: fn(&Hunk) -> &str| hunks.iter().map(|hunk| side(hunk)).collect::<String>();
    let diff = |old: Option<&str>, new: &str| {
        object! { "type": "diff", "path": &*path, "oldText": old, "newText": new }
    };
    match &*operation {
        "add" if !hunks.is_empty() => {
            made.push(diff(None, &joined(|hunk| &hunk.new)));
            return;
        }
        "delete" if !hunks.is_empty() => {
            made.push(diff(Some(&joined(|hunk| &hunk.old)), ""));
        }
        "modify" | "move" | "copy" => {
            for hunk in hunks {
                let mut item = diff(Some(&hunk.old), &hunk.new);
                item.report("oldStart", hunk.old_start);
                item.report("newStart", hunk.new_start);
                item.report("partial", true);
                made.push(item);
            }
        }
        _ => {}
    }
    let sentence = match &*operation {
        "modify" if !hunks.is_empty() => return,
        "add" => format!("Added {path}"),
        "modify" => format!("Modified {path}"),
        "delete" => format!("Deleted {path}"),
        "move" => format!("Moved {old_path} to {path}"),
        "copy" => format!("Copied {old_path} to {path}"),
        other => format!("{other} {path}"),
    };
    let kinds = [
        change.text("fileType").filter(|kind| kind != "text"),
        change
            .text("mimeType")
            .filter(|kind| !kind.starts_with("text/")),
    ];
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    made.push(match kinds.is_empty() {
        true => text_item(&sentence),
        false => text_item(&format!("{sentence} ({})", kinds.join(", "))),
    });
}
