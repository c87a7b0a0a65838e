//! The import graph of a source tree: an edge is an import from one file by another.
//!
//! A `mod.rs` that only declares and re-exports is not a file of the graph: an import through it
//! leads to the file that it re-exports from.

use std::collections::{BTreeMap, BTreeSet};

/// A module's path, without the crate: `["jsonrpc", "frame"]`.
type Module = Vec<String>;

/// The imports of one file.
struct File {
    module: Module,
    /// Paths that its code names, `use` trees expanded.
    named: BTreeSet<String>,
    /// Those of `pub use`.
    exported: Vec<String>,
    /// It has nothing but `mod` and `use`.
    only_declares: bool,
}

/// All files of a tree, by their path below `src/`.
pub(super) struct Imports(BTreeMap<String, File>);

impl Imports {
    /// Of files with their text, their paths relative to `src/`.
    pub(super) fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let read = |(name, text): (&str, &str)| (name.to_owned(), File::read(name, text));
        Self(files.into_iter().map(read).collect())
    }

    /// Groups of files each of which imports every other, directly or through others.
    pub(super) fn cycles(&self) -> Vec<Vec<String>> {
        let edges: BTreeMap<&str, BTreeSet<&str>> = self
            .0
            .iter()
            .filter(|(_, file)| !file.only_declares)
            .map(|(name, file)| (name.as_str(), self.edges(name, file)))
            .collect();
        let reached: BTreeMap<&str, BTreeSet<&str>> = edges
            .keys()
            .map(|from| (*from, reach(from, &edges)))
            .collect();
        let mut cycles = BTreeSet::new();
        for (from, reachable) in &reached {
            if !reachable.contains(from) {
                continue;
            }
            let both = |to: &&&str| reached.get(**to).is_some_and(|back| back.contains(from));
            let cycle: Vec<String> = reachable
                .iter()
                .filter(both)
                .map(|to| (*to).to_owned())
                .collect();
            cycles.insert(cycle);
        }
        cycles.into_iter().collect()
    }

    fn edges<'a>(&'a self, name: &str, file: &File) -> BTreeSet<&'a str> {
        let resolved = file
            .named
            .iter()
            .filter_map(|path| self.resolve(&file.module, path, 0));
        resolved
            .filter(|to| *to != name && !self.0[*to].only_declares)
            .collect()
    }

    fn file_of(&self, module: &[String]) -> Option<&str> {
        let of = |(_, file): &(&String, &File)| file.module == module;
        self.0.iter().find(of).map(|(name, _)| name.as_str())
    }

    /// The file that a path leads to, seen from a module.
    fn resolve(&self, from: &[String], path: &str, depth: usize) -> Option<&str> {
        let mut parts = path.split("::").peekable();
        let mut at = from.to_vec();
        match parts.peek().copied() {
            Some("crate") => at.clear(),
            Some("self" | "super") => {}
            Some(first) => {
                let child: Module = at.iter().cloned().chain([first.to_owned()]).collect();
                self.file_of(&child)?;
            }
            None => return None,
        }
        while let Some(part) = parts.peek().copied() {
            match part {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                _ => {
                    at.push(part.to_owned());
                    if self.file_of(&at).is_none() {
                        at.pop();
                        break;
                    }
                }
            }
            parts.next();
        }
        let found = self.file_of(&at)?;
        let Some(item) = parts.next() else {
            return Some(found);
        };
        let mut exports = self.0[found].exported.iter();
        let export = exports.find(|path| path.rsplit("::").next() == Some(item));
        // Re-exports of re-exports; the tree has no deeper ones.
        let through = export.filter(|_| depth < 8);
        through
            .and_then(|path| self.resolve(&at, path, depth + 1))
            .or(Some(found))
    }
}

impl File {
    fn read(name: &str, text: &str) -> Self {
        let path = name.strip_suffix(".rs").unwrap_or(name);
        let path = path.strip_suffix("/mod").unwrap_or(path);
        let module = match path {
            "lib" | "main" => Module::new(),
            path => path.split('/').map(str::to_owned).collect(),
        };
        let code = code(text);
        let mut named = BTreeSet::new();
        let mut exported = Vec::new();
        let mut only_declares = name.ends_with("mod.rs") || name == "lib.rs";
        let mut body = String::new();
        for (public, tree) in use_trees(&code, &mut body) {
            for path in expand(&tree) {
                if public {
                    exported.push(path.clone());
                }
                named.insert(path);
            }
        }
        for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let declares = line.starts_with('#')
                || (line.ends_with(';') && line.split_whitespace().any(|word| word == "mod"));
            only_declares &= declares;
        }
        // `module::item`, where `module` was imported.
        let modules: Vec<(String, String)> = named
            .iter()
            .filter_map(|path| Some((path.rsplit("::").next()?.to_owned(), path.clone())))
            .collect();
        for path in paths(&body) {
            let (first, tail) = path.split_once("::").unwrap_or((&path, ""));
            match first {
                "crate" | "super" | "self" => drop(named.insert(path.clone())),
                _ => {
                    let imported = modules.iter().find(|(name, _)| name == first);
                    if let Some((_, whole)) = imported {
                        named.insert(format!("{whole}::{tail}"));
                    }
                }
            }
        }
        Self {
            module,
            named,
            exported,
            only_declares,
        }
    }
}

/// What can be reached from a file, itself only by a way back.
fn reach<'a>(from: &str, edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = edges[from].iter().copied().collect();
    while let Some(next) = open.pop() {
        if let Some((next, more)) = edges.get_key_value(next)
            && reached.insert(*next)
        {
            open.extend(more);
        }
    }
    reached
}

/// The text without comments, string contents and inline tests.
fn code(text: &str) -> String {
    let text = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = text.lines().map(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let mut kept = String::new();
        for (at, part) in code.split('"').enumerate() {
            kept.push_str(if at % 2 == 0 { part } else { "\"\"" });
        }
        kept
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The trees of all `use` statements, and whether they re-export; what remains goes to `body`.
fn use_trees(code: &str, body: &mut String) -> Vec<(bool, String)> {
    let mut trees = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in code.lines() {
        let line = line.trim();
        let public = line.starts_with("pub");
        let statement = line.strip_prefix("pub").unwrap_or(line).trim_start();
        // `pub(in crate::observe)`
        let statement = match statement.strip_prefix('(') {
            Some(rest) => rest
                .split_once(')')
                .map_or("", |(_, rest)| rest.trim_start()),
            None => statement,
        };
        match (&mut open, statement.strip_prefix("use ")) {
            (Some((_, tree)), _) => tree.push_str(line),
            (None, Some(tree)) => open = Some((public, tree.to_owned())),
            (None, None) => {
                body.push_str(line);
                body.push('\n');
            }
        }
        if let Some((public, tree)) = open.take_if(|(_, tree)| tree.ends_with(';')) {
            trees.push((public, tree.trim_end_matches(';').to_owned()));
        }
    }
    trees
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, list)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.split_whitespace().collect()];
    };
    let list = list.strip_suffix('}').unwrap_or(list);
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts
        .flat_map(|part| expand(&format!("{}{}", before.trim(), part.trim())))
        .collect()
}

/// The paths with `::` that a text names.
fn paths(text: &str) -> BTreeSet<String> {
    let parts = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let paths = parts.filter(|part| part.contains("::") && !part.starts_with(':'));
    paths
        .map(|path| path.trim_end_matches(':').to_owned())
        .collect()
}
