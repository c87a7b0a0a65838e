//! Rules for the source tree: layers, file sizes, module docs, where some names may be used.
//! `src/ARCHITECTURE.md` gives the reasons.

mod imports;

use std::fs;
use std::path::{Path, PathBuf};

use imports::Imports;

/// What each module may import of this crate, besides itself.
const LAYERS: [(&str, &[&str]); 14] = [
    ("docs", &[]),
    ("jsonrpc", &[]),
    ("acp", &["jsonrpc"]),
    ("dialect", &["jsonrpc"]),
    ("policy", &["jsonrpc", "dialect"]),
    ("recording", &["jsonrpc", "acp"]),
    ("auth", &["jsonrpc"]),
    ("transport", &["jsonrpc", "auth", "recording"]),
    ("agent_connect", &["jsonrpc", "auth", "transport"]),
    ("conversation", &["jsonrpc", "dialect", "policy"]),
    ("observe", &["jsonrpc", "recording", "auth", "conversation"]),
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
        "viewer",
        &["jsonrpc", "acp", "recording", "auth", "transport"],
    ),
    (
        "cli",
        &[
            "docs",
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
            "viewer",
        ],
    ),
];

/// Names that only some files may use, and why.
const RESTRICTED: [(&str, &[&str], &str); 9] = [
    (
        "io::stdin",
        &[
            "transport/stdio/",
            "transport/process/watchdog.rs",
            "cli/check.rs",
            "cli/console.rs",
        ],
        "only transport::stdio reads stdin (the watchdog is another process; check and console carry no conversation)",
    ),
    (
        "io::stdout",
        &[
            "transport/stdio/",
            "cli/demo/client.rs",
            "cli/check.rs",
            "cli/console.rs",
        ],
        "only transport::stdio writes stdout (demo, check and console carry no conversation)",
    ),
    ("unbounded", &[], "every queue has a limit"),
    (
        "tokio::",
        &["transport/", "agent_connect/", "proxy/", "viewer/", "cli/"],
        "the modules below are pure",
    ),
    (
        "Instant::now",
        &[
            "proxy/",
            "transport/",
            "agent_connect/",
            "viewer/",
            "cli/",
            "observe/recorder/",
        ],
        "below proxy, time is an argument (the recorder's events carry none)",
    ),
    (
        "crate::dialect",
        &["dialect/", "policy/", "conversation/", "cli/"],
        "transports do not know that dialects exist",
    ),
    (
        "crate::acp",
        &["acp/", "recording/lint/", "viewer/", "cli/"],
        "the schema is used after a conversation, not during it",
    ),
    (
        "crate::recording",
        &[
            "recording/",
            "transport/replay/",
            "observe/",
            "viewer/",
            "cli/",
        ],
        "of the transports, only replay reads recordings",
    ),
    (
        "serde_json::Value",
        &[
            "jsonrpc/reply.rs",
            "acp/",
            "cli/",
            "conversation/",
            "proxy/resume/initialize.rs",
            "policy/path_fields.rs",
            "build.rs",
            "dialect/table/",
            "dialect/vectors.rs",
            "recording/",
            "agent_connect/",
            "viewer/",
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
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

fn check(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The modules that a line of code names with `crate::…`, one level of braces included.
fn modules_named(line: &str) -> Vec<String> {
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
        .filter(|module| !module.is_empty())
        .collect()
}

#[test]
fn modules_import_only_downward() {
    let mut faults = Vec::new();
    for Source { name, text } in sources() {
        let Some((module, _)) = name.split_once('/') else {
            continue;
        };
        let Some((_, allowed)) = LAYERS.iter().find(|(known, _)| *known == module) else {
            faults.push(format!(
                "src/{name}: the module `{module}` has no layer; add it to tests/it/structure.rs"
            ));
            continue;
        };
        for (at, line) in text.lines().enumerate() {
            for named in modules_named(line) {
                let known = LAYERS.iter().any(|(known, _)| *known == named);
                if known && named != module && !allowed.contains(&named.as_str()) {
                    faults.push(format!(
                        "src/{name}:{}: `{module}` may not import `{named}`",
                        at + 1
                    ));
                }
            }
        }
    }
    check(&faults);
}

/// `src/ARCHITECTURE.md`: items that import each other are one unit and stand in one file.
#[test]
fn files_import_each_other_one_way() {
    let sources = sources();
    let files = sources
        .iter()
        .map(|file| (file.name.as_str(), file.text.as_str()));
    let cycles = Imports::of(files).cycles();
    let listed: Vec<String> = cycles.iter().map(|cycle| cycle.join(", ")).collect();
    assert!(
        listed.is_empty(),
        "files import each other:\n{}\n",
        listed.join("\n")
    );
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

#[test]
fn files_are_short_and_documented() {
    let mut faults = Vec::new();
    for Source { name, text } in sources() {
        let lines = text.lines().count();
        if lines > 800 {
            faults.push(format!(
                "src/{name}: {lines} lines; at most 800, usually 100 to 500"
            ));
        }
        if !text.starts_with("//! ") {
            faults.push(format!(
                "src/{name}: does not begin with `//!`: what it does and what it relies on"
            ));
        }
        let code = text.lines().any(|line| {
            line.trim_start().starts_with("fn ")
                || line.starts_with("pub fn ")
                || line.starts_with("impl")
        });
        if name.ends_with("/mod.rs")
            && code
            && !["cli/demo/mod.rs", "observe/mod.rs"].contains(&name.as_str())
        {
            faults.push(format!(
                "src/{name}: a mod.rs declares and re-exports, and holds no code"
            ));
        }
    }
    check(&faults);
}

#[test]
fn restricted_names_are_used_only_where_allowed() {
    let mut faults = Vec::new();
    for Source { name, text } in sources() {
        for (at, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for (word, files, why) in RESTRICTED {
                let allowed = files
                    .iter()
                    .any(|file| name == *file || (file.ends_with('/') && name.starts_with(file)));
                if code.contains(word) && !allowed {
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
        .map(|name| format!("{name}: named in tests/README.md, but does not exist"))
        .collect();
    check(&faults);
}

/// They must pass while everything inside the program changes.
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
    assert_eq!(modules_named("use crate::proxy::End;"), ["proxy"]);
    assert_eq!(
        modules_named("use crate::{conversation::Core, jsonrpc::Frame};"),
        ["conversation", "jsonrpc"]
    );
    assert_eq!(
        modules_named("    let x = crate::cli::run(); // crate::observe"),
        ["cli"]
    );
    assert!(modules_named("// use crate::proxy::End;").is_empty());
}
