//! The rules of the house: floors, sizes, openings, bounds.
//!
//! They are tests so that nothing but `cargo test` is needed to keep them; `src/ARCHITECTURE.md`
//! says what they are for.

use std::fs;
use std::path::{Path, PathBuf};

/// What each room may import of ours, besides itself.
const FLOORS: [(&str, &[&str]); 12] = [
    ("jsonrpc", &[]),
    ("acp", &["jsonrpc"]),
    ("dialect", &["jsonrpc"]),
    ("policy", &["jsonrpc", "dialect"]),
    ("recording", &["jsonrpc", "acp"]),
    ("auth", &["jsonrpc"]),
    ("agent_connect", &["jsonrpc"]),
    (
        "transport",
        &["jsonrpc", "auth", "recording", "agent_connect"],
    ),
    ("conversation", &["jsonrpc", "dialect", "policy"]),
    ("observe", &["jsonrpc", "recording", "conversation"]),
    (
        "proxy",
        &[
            "jsonrpc",
            "auth",
            "policy",
            "transport",
            "conversation",
            "observe",
        ],
    ),
    (
        "cli",
        &[
            "jsonrpc",
            "acp",
            "dialect",
            "policy",
            "recording",
            "auth",
            "agent_connect",
            "transport",
            "conversation",
            "observe",
            "proxy",
        ],
    ),
];

/// Words that only some files may use, and why.
const KEPT_TO: [(&str, &[&str], &str); 10] = [
    (
        "io::stdin",
        &[
            "transport/stdio/",
            "transport/process/keeper.rs",
            "cli/check.rs",
            "cli/console.rs",
        ],
        "only transport::stdio touches our stdin (the keeper is another process; check and console carry nothing)",
    ),
    (
        "io::stdout",
        &[
            "transport/stdio/",
            "cli/demo/client.rs",
            "cli/check.rs",
            "cli/console.rs",
        ],
        "only transport::stdio touches our stdout (demo, check and console carry nothing)",
    ),
    ("unbounded", &[], "every queue has a limit"),
    (
        "tokio::",
        &["transport/", "proxy/", "cli/"],
        "the floors below are pure",
    ),
    (
        "Instant::now",
        &["proxy/", "transport/", "cli/", "observe/recorder/"],
        "time is an argument below the relay (but the recorder's: what it sees has none)",
    ),
    (
        "crate::dialect",
        &["dialect/", "policy/", "conversation/", "cli/"],
        "transports do not know that dialects exist",
    ),
    (
        "crate::acp",
        &["acp/", "recording/lint/", "cli/"],
        "the schema is for those who look at a conversation afterwards",
    ),
    (
        "crate::recording",
        &["recording/", "transport/replay/", "observe/", "cli/"],
        "of the transports, only the one that plays recordings knows that there are any",
    ),
    (
        "crate::agent_connect",
        &["agent_connect/", "transport/agent_connect/", "cli/"],
        "of the transports, only the one that serves Agent Connect is an ACP client by itself",
    ),
    (
        "serde_json::Value",
        &[
            "jsonrpc/reply.rs",
            "acp/",
            "cli/",
            "conversation/",
            "proxy/resume/opening.rs",
            "policy/places.rs",
            "build.rs",
            "dialect/table/",
            "dialect/vectors.rs",
            "recording/",
            "agent_connect/",
            "transport/agent_connect/",
        ],
        "no JSON tree on the message path",
    ),
];

struct Source {
    /// Relative to `src/`.
    name: String,
    text: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    found.sort();
    assert!(found.len() > 30, "only {} files found", found.len());
    found
        .into_iter()
        .map(|path| Source {
            name: path
                .strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/"),
            text: fs::read_to_string(path).unwrap(),
        })
        .collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

fn check(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The rooms that a line of code names with `crate::…`, one level of braces included.
fn rooms_named(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let word = |text: &str| {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect::<String>()
    };
    code.match_indices("crate::")
        .flat_map(|(at, _)| {
            let rest = &code[at + "crate::".len()..];
            match rest.strip_prefix('{') {
                Some(list) => list.split(',').map(|part| word(part.trim())).collect(),
                None => vec![word(rest)],
            }
        })
        .filter(|room| !room.is_empty())
        .collect()
}

#[test]
fn rooms_import_only_downward() {
    let mut faults = Vec::new();
    for Source { name, text } in sources() {
        let Some((room, _)) = name.split_once('/') else {
            continue;
        };
        let Some((_, allowed)) = FLOORS.iter().find(|(known, _)| *known == room) else {
            faults.push(format!(
                "src/{name}: the room `{room}` has no floor; give it one in tests/it/house.rs"
            ));
            continue;
        };
        for (at, line) in text.lines().enumerate() {
            for named in rooms_named(line) {
                let known = FLOORS.iter().any(|(known, _)| *known == named);
                if known && named != room && !allowed.contains(&named.as_str()) {
                    faults.push(format!(
                        "src/{name}:{}: `{room}` may not import `{named}`",
                        at + 1
                    ));
                }
            }
        }
    }
    check(&faults);
}

#[test]
fn files_are_one_idea() {
    let mut faults = Vec::new();
    for Source { name, text } in sources() {
        let lines = text.lines().count();
        if lines > 500 {
            faults.push(format!(
                "src/{name}: {lines} lines; 500 is the wall, 400 the aim"
            ));
        }
        if !text.starts_with("//! ") {
            faults.push(format!(
                "src/{name}: does not open with `//!`: what it is, why, what is not here"
            ));
        }
        let work = text.lines().any(|line| {
            line.trim_start().starts_with("fn ")
                || line.starts_with("pub fn ")
                || line.starts_with("impl")
        });
        if name.ends_with("/mod.rs")
            && work
            && !["cli/demo/mod.rs", "observe/mod.rs"].contains(&name.as_str())
        {
            faults.push(format!(
                "src/{name}: a mod.rs introduces its room and holds no work"
            ));
        }
    }
    check(&faults);
}

#[test]
fn things_stay_where_they_belong() {
    let mut faults = Vec::new();
    for Source { name, text } in sources() {
        for (at, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for (word, homes, why) in KEPT_TO {
                let home = homes
                    .iter()
                    .any(|home| name == *home || (home.ends_with('/') && name.starts_with(home)));
                if code.contains(word) && !home {
                    faults.push(format!("src/{name}:{}: `{word}`: {why}", at + 1));
                }
            }
        }
    }
    check(&faults);
}

/// `tests/README.md` names a test or a file for each threat, and the figures that it leaves.
#[test]
fn what_is_named_against_a_threat_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("tests/README.md")).unwrap();
    let (_, table) = text.split_once("## Threats").unwrap();
    let mut files = Vec::new();
    walk(&root.join("tests/it"), &mut files);
    walk(&root.join("src"), &mut files);
    let code: String = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let named: Vec<&str> = rows
        .flat_map(|row| row.split('`').skip(1).step_by(2))
        .collect();
    assert!(named.len() > 30, "only {} names found", named.len());
    let faults: Vec<String> = named
        .into_iter()
        .filter(|name| {
            let metric = name.split('{').next().unwrap_or_default();
            if metric.ends_with("_total") {
                return !code.contains(&format!("Counter \"acp_relay_{metric}\""));
            }
            match name.contains('/') {
                true => !root.join("tests").join(name).exists(),
                false => !code.contains(&format!("fn {name}()")),
            }
        })
        .map(|name| format!("{name}: named in tests/README.md, and not there"))
        .collect();
    check(&faults);
}

/// They have to hold while everything beneath the program's surface changes.
#[test]
fn black_box_tests_import_nothing_of_the_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/black_box");
    let mut files = Vec::new();
    walk(&root, &mut files);
    assert!(files.len() > 5, "only {} files found", files.len());
    let faults: Vec<String> = files
        .iter()
        .filter(|file| fs::read_to_string(file).unwrap().contains("acp_relay::"))
        .map(|file| format!("{}: imports from the crate", file.display()))
        .collect();
    check(&faults);
}

#[test]
fn the_visible_top_level_is_fixed() {
    let expected = [
        "CHANGELOG.md",
        "Cargo.lock",
        "Cargo.toml",
        "Dockerfile",
        "LICENSE",
        "README.md",
        "mappings",
        "packaging",
        "src",
        "tests",
    ];
    let faults: Vec<String> = fs::read_dir(env!("CARGO_MANIFEST_DIR"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            !name.starts_with('.') && name != "target" && !expected.contains(&name.as_str())
        })
        .map(|name| format!("{name}: does not belong at the top level"))
        .collect();
    check(&faults);
}

#[test]
fn the_rules_can_fail() {
    assert_eq!(rooms_named("use crate::proxy::End;"), ["proxy"]);
    assert_eq!(
        rooms_named("use crate::{conversation::Core, jsonrpc::Frame};"),
        ["conversation", "jsonrpc"]
    );
    assert_eq!(
        rooms_named("    let x = crate::cli::run(); // crate::observe"),
        ["cli"]
    );
    assert!(rooms_named("// use crate::proxy::End;").is_empty());
}
