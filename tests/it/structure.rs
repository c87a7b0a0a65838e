//! Rules for the source tree: crates, file sizes, module docs, where some names may be used.
//! `src/ARCHITECTURE.md` gives the reasons.

mod imports;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use imports::Imports;

/// Names that only some files and folders may use, and why.
const RESTRICTED: &str = "\
io::stdin | transport/stdio/ transport/process/watchdog.rs transport/link_watchdog.rs transport/ssh/join.rs login/opener.rs cli/check.rs cli/console.rs | only transport::stdio reads stdin (the watchdogs and what ssh starts are other processes; check and console carry no conversation)
io::stdout | transport/stdio/ transport/ssh/join.rs cli/check.rs cli/console.rs | only transport::stdio writes stdout (what ssh starts is another process; check and console carry no conversation)
unbounded | | every queue has a limit
tokio:: | transport/ replay/link.rs replay/play.rs agent_connect/ proxy/ cluster/ login/ viewer/ cli/ | the modules below are pure
Instant::now | proxy/ transport/ replay/link.rs replay/play.rs agent_connect/ cluster/ viewer/ cli/ observe/recorder/ conversation/offline.rs | below proxy, time is an argument (the recorder's events carry none; offline needs a beginning of virtual time)
serde_json::Value | jsonrpc/reply.rs acp/ cli/ conversation/ proxy/resume/initialize.rs policy/path_fields.rs dialect/build.rs dialect/table/ dialect/vectors.rs recording/ replay/ analysis/ agent_connect/ viewer/ | no JSON tree on the message path";

/// A file with its path relative to the folder that was read.
type Source = (String, String);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Rust files below a folder of the project, sorted.
fn sources(folder: &str) -> Vec<Source> {
    let top = root().join(folder);
    let (mut folders, mut found) = (vec![top.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let name = path.strip_prefix(&top).unwrap().to_str().unwrap();
                found.push((name.to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(found.len() > 5, "only {} files found", found.len());
    found
}

fn check(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The words in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The folders of the crates below the root's, sorted.
fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("src")).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path());
    let mut crates: Vec<String> = folders
        .filter(|folder| folder.join("Cargo.toml").exists())
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    crates.sort();
    assert!(crates.len() > 10, "{crates:?}");
    crates
}

/// The crates, each with its files by their path in it; the root's name is empty.
fn crate_sources() -> Vec<(String, Vec<Source>)> {
    let (crates, mut all) = (crates(), sources("src"));
    all.retain(|(name, _)| !name.contains("/examples/"));
    let of = |prefix: &str| -> Vec<Source> {
        let inside =
            |(name, text): &Source| Some((name.strip_prefix(prefix)?.to_owned(), text.clone()));
        all.iter().filter_map(inside).collect()
    };
    let is_inner = |name: &str| {
        crates
            .iter()
            .any(|one| name.starts_with(&format!("{one}/")))
    };
    let root = of("").into_iter().filter(|(name, _)| !is_inner(name));
    let mut found = vec![(String::new(), root.collect())];
    found.extend(
        crates
            .iter()
            .map(|name| (name.clone(), of(&format!("{name}/")))),
    );
    found
}

fn imports(files: &[Source]) -> Imports {
    Imports::of(files.iter().map(|(name, text)| (&**name, &**text)))
}

/// The table of crates in `ARCHITECTURE.md` has the dependencies that the manifests have, and the log
/// knows all crates.
#[test]
fn crates_are_listed_with_their_dependencies() {
    let text = fs::read_to_string(root().join("src/ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("| crate |").unwrap();
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let crates = crates();
    let mut listed = Vec::new();
    let mut faults = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let name = quoted(cells[0]).next().unwrap().to_owned();
        let Ok(manifest) = fs::read_to_string(root().join(format!("src/{name}/Cargo.toml"))) else {
            continue;
        };
        let (_, ours) = manifest.split_once("[dependencies]").unwrap();
        let ours = ours.split("\n[").next().unwrap().lines();
        let ours = ours.filter_map(|line| line.split(['.', ' ']).next());
        let ours: BTreeSet<&str> = ours
            .filter(|one| crates.iter().any(|name| name == one))
            .collect();
        let stated: BTreeSet<&str> = quoted(cells[2]).collect();
        if ours != stated {
            faults.push(format!(
                "`{name}` depends on {ours:?}; the table says {stated:?}"
            ));
        }
        listed.push(name);
    }
    let log = fs::read_to_string(root().join("src/cli/telemetry.rs")).unwrap();
    let unknown = crates
        .iter()
        .filter(|name| !log.contains(&format!("\"{name}\"")));
    faults.extend(unknown.map(|name| format!("`{name}` is not in src/cli/telemetry.rs")));
    let unlisted = crates.iter().filter(|name| !listed.contains(name));
    faults.extend(unlisted.map(|name| format!("`{name}` is not in the table")));
    check(&faults);
}

/// `src/ARCHITECTURE.md`: items that import each other are one unit and stand in one file.
#[test]
fn files_import_each_other_one_way() {
    let mut faults = Vec::new();
    for (name, files) in crate_sources() {
        let cycles = imports(&files).cycles();
        faults.extend(
            cycles
                .iter()
                .map(|cycle| format!("{name}: {}", cycle.join(", "))),
        );
    }
    check(&faults);
}

#[test]
fn a_cycle_of_files_is_found() {
    let files = |c| {
        let files = [
            ("a/mod.rs", "mod one;\nmod two;\npub use one::One;\n"),
            ("a/one.rs", "use super::two::Two;\n"),
            ("a/two.rs", c),
        ];
        Imports::of(files).cycles()
    };
    let both = [["a/one.rs".to_owned(), "a/two.rs".to_owned()]];
    // By its path, through a re-export, inside a function, through an imported module.
    assert_eq!(files("use super::one::One;\n"), both);
    assert_eq!(files("use super::{One, x};\n"), both);
    assert_eq!(files("fn f() -> crate::a::One {}\n"), both);
    assert_eq!(files("use super::one;\nfn f() { one::g() }\n"), both);
    assert!(files("// use super::one::One;\n").is_empty());
}

/// The files of a tree that no `mod` of the file above them declares; `roots` are not declared.
fn orphans(files: &[Source], roots: &[&str]) -> Vec<String> {
    let is_orphan = |(name, _): &&Source| {
        let path = name.strip_suffix(".rs").unwrap();
        let path = path.strip_suffix("/mod").unwrap_or(path);
        let (above, module) = path.rsplit_once('/').unwrap_or(("", path));
        let parents = match above {
            "" => vec!["lib.rs".to_owned(), "main.rs".to_owned()],
            above => vec![format!("{above}.rs"), format!("{above}/mod.rs")],
        };
        let mut parents = files.iter().filter(|(name, _)| parents.contains(name));
        let line = format!("mod {module};");
        let declares = |text: &str| text.lines().any(|one| one.trim_end().ends_with(&line));
        !roots.contains(&name.as_str()) && !parents.any(|(_, text)| declares(text))
    };
    let found = files.iter().filter(is_orphan);
    found
        .map(|(name, _)| format!("{name}: declared by no `mod`"))
        .collect()
}

#[test]
fn every_file_is_declared() {
    for (_, files) in crate_sources() {
        check(&orphans(&files, &["lib.rs", "main.rs", "build.rs"]));
    }
    check(&orphans(&sources("tests/it"), &["main.rs"]));
    let files = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "pub mod b;"),
        ("a/b.rs", ""),
        ("a/c.rs", ""),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(
        orphans(&files, &["lib.rs"]),
        ["a/c.rs: declared by no `mod`"]
    );
}

#[test]
fn files_are_short_and_documented() {
    let mut faults = Vec::new();
    for (name, text) in sources("src") {
        let lines = text.lines().count();
        if lines > 800 {
            faults.push(format!(
                "src/{name}: {lines} lines; at most 800, usually 100 to 500"
            ));
        }
        if !text.starts_with("//! ") {
            faults.push(format!(
                "src/{name}: does not begin with `//!`: what it does"
            ));
        }
        let is_code = |line: &str| line.trim_start().starts_with("fn ");
        let is_item = |line: &str| line.starts_with("pub fn ") || line.starts_with("impl");
        let may_hold_code = name == "observe/lib.rs";
        if (name.ends_with("/mod.rs") || name.ends_with("/lib.rs"))
            && text.lines().any(|line| is_code(line) || is_item(line))
            && !may_hold_code
        {
            faults.push(format!(
                "src/{name}: a mod.rs or lib.rs declares and re-exports, and holds no code"
            ));
        }
    }
    check(&faults);
}

#[test]
fn restricted_names_are_used_only_where_allowed() {
    let mut faults = Vec::new();
    for (name, text) in sources("src") {
        for rule in RESTRICTED.lines() {
            let [word, files, why] = rule.splitn(3, '|').collect::<Vec<_>>()[..] else {
                panic!("{rule}");
            };
            let word = word.trim();
            let mut files = files.split_whitespace();
            if files.any(|file| name == *file || file.ends_with('/') && name.starts_with(file)) {
                continue;
            }
            for (at, line) in text.lines().enumerate() {
                if line.split("//").next().unwrap_or_default().contains(word) {
                    faults.push(format!("src/{name}:{}: `{word}`: {why}", at + 1));
                }
            }
        }
    }
    check(&faults);
}

/// `tests/README.md` names a test or a file for each threat, and the metrics that count it.
#[test]
fn names_in_the_table_of_threats_exist() {
    let text = fs::read_to_string(root().join("tests/README.md")).unwrap();
    let (_, table) = text.split_once("## Threats").unwrap();
    let files = sources("tests/it").into_iter().chain(sources("src"));
    let code: String = files.map(|(_, text)| text).collect();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let named: Vec<&str> = rows.flat_map(quoted).collect();
    assert!(named.len() > 30, "only {} names found", named.len());
    let faults: Vec<String> = named
        .into_iter()
        .filter(|name| {
            let metric = name.split('{').next().unwrap_or_default();
            if metric.ends_with("_total") {
                return !code.contains(&format!("Counter \"acp_relay_{metric}\""));
            }
            match name.contains('/') {
                true => !root().join("tests").join(name).exists(),
                false => !code.contains(&format!("fn {name}()")),
            }
        })
        .map(|name| format!("{name}: named in tests/README.md, but does not exist"))
        .collect();
    check(&faults);
}

/// They must pass while everything inside the program changes.
#[test]
fn black_box_tests_import_nothing_of_the_crate() {
    let files = sources("tests/it/black_box");
    let importing = files
        .iter()
        .filter(|(_, text)| text.contains("acp_relay::"));
    let faults: Vec<String> = importing
        .map(|(name, _)| format!("{name}: imports from the crate"))
        .collect();
    check(&faults);
}

#[test]
fn the_visible_top_level_is_fixed() {
    let expected =
        "CHANGELOG.md Cargo.lock Cargo.toml Dockerfile LICENSE README.md mappings src tests";
    let expected: Vec<&str> = expected.split(' ').collect();
    let faults: Vec<String> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            !name.starts_with('.') && name != "target" && !expected.contains(&name.as_str())
        })
        .map(|name| format!("{name}: does not belong at the top level"))
        .collect();
    check(&faults);
}
