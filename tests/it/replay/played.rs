//! The played agent and client, without links and clocks: `tests/vectors/played/*.txt`.
//!
//! `== NAME` begins a recorded conversation, one second per line (`>` from the client), and
//! `let NAME TEXT` a text that `$NAME` stands for. `## TITLE` begins a case: what is played
//! (`recorded NAME`, else `talk`), how (`with …`), and what happens. A line with the sign of the
//! live side is a message of it; the played side is read after it, or not yet when the sign is
//! doubled. The lines after it are all that the played side does: it sends a line with these parts
//! (separated by `…`), or waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use acp_relay::jsonrpc::{Choice as _, Frame, Side, parse_duration};
use acp_relay::replay::{
    Actor, ActorAction, CompareLevel, Driver, DriverAction, IgnoreRules, Script, Timeouts, compare,
};
use acp_relay::transport::replay::{InjectedFault, MatchRule, ReplayRules, Speed, Unmatched};

/// The conversations and the cases of a file, each case with its title and lines.
struct Vectors {
    conversations: BTreeMap<String, String>,
    cases: Vec<(String, Vec<String>)>,
}

impl Vectors {
    fn read(name: &str) -> Self {
        let path = format!(
            "{}/tests/vectors/played/{name}.txt",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(path).unwrap();
        let (mut conversations, mut cases) = (BTreeMap::new(), Vec::new());
        let mut names: Vec<(String, String)> = Vec::new();
        let mut conversation: Option<&mut String> = None;
        for line in text.lines() {
            let mut line = line.to_owned();
            for (name, text) in &names {
                line = line.replace(&format!("${name}"), text);
            }
            if let Some(name) = line.strip_prefix("== ") {
                conversation = Some(conversations.entry(name.to_owned()).or_default());
            } else if let Some(title) = line.strip_prefix("## ") {
                conversation = None;
                cases.push((title.to_owned(), Vec::new()));
            } else if let Some((name, text)) =
                line.strip_prefix("let ").and_then(|l| l.split_once(' '))
            {
                names.push((name.to_owned(), text.to_owned()));
                names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
            } else if let Some(text) = &mut conversation {
                text.push_str(&(line + "\n"));
            } else if let Some((_, lines)) = cases.last_mut()
                && !line.is_empty()
            {
                lines.push(line);
            }
        }
        Self {
            conversations,
            cases,
        }
    }

    /// The script that a case names.
    fn script(&self, lines: &[String]) -> Arc<Script> {
        let name = lines.iter().find_map(|line| line.strip_prefix("recorded "));
        script(&self.conversations[name.unwrap_or("talk")])
    }
}

/// The conversation `talk`.
pub(super) fn talk() -> String {
    Vectors::read("agent").conversations["talk"].clone()
}

/// The script of lines with a sign for the sender.
pub(super) fn script(text: &str) -> Arc<Script> {
    let mut script = Script::default();
    let lines = text.lines().filter(|line| !line.is_empty());
    for (n, line) in (1..).zip(lines) {
        let (sign, message) = line.split_once(' ').unwrap();
        let from = if sign == ">" {
            Side::Client
        } else {
            Side::Agent
        };
        script.push(n, n * 1_000_000, from, Frame::from(message.to_owned()));
    }
    Arc::new(script)
}

fn text_of(frame: &Frame) -> String {
    String::from_utf8(frame.as_bytes().to_vec()).unwrap()
}

/// Whether a line has all parts.
fn has(line: &str, parts: &str) -> bool {
    parts.split(" … ").all(|part| line.contains(part))
}

/// The rules of a case.
fn rules(lines: &[String]) -> ReplayRules {
    let mut rules = ReplayRules::default();
    for option in lines.iter().filter_map(|line| line.strip_prefix("with ")) {
        let (name, value) = option.split_once(' ').unwrap();
        match name {
            "match" => rules.matching = MatchRule::from_name(value).unwrap(),
            "unmatched" => rules.unmatched = Unmatched::from_name(value).unwrap(),
            "speed" => rules.speed = value.parse().unwrap(),
            "max-idle" => rules.max_idle = parse_duration(value).ok(),
            "fault" => rules.faults = InjectedFault::parse_all(value).unwrap(),
            other => panic!("{other}"),
        }
    }
    rules
}

/// What the agent does until it waits for the client.
fn agent_output(actor: &mut Actor, now: &mut Duration, output: &mut VecDeque<String>) {
    loop {
        match actor.next(*now) {
            ActorAction::Send(frame) => output.push_back(format!("< {}", text_of(&frame))),
            ActorAction::Forward(frame) => {
                output.push_back(format!(
                    "forwarded {}",
                    text_of(&frame).replace('"', "\\\"")
                ));
            }
            ActorAction::Wait(Some(until)) => {
                assert!(until > *now, "the wait is already over");
                output.push_back(format!("after {:?}", until - *now));
                *now = until;
            }
            ActorAction::Wait(None) => return,
            ActorAction::Close => return output.push_back("closed".to_owned()),
        }
    }
}

#[test]
fn the_agent_is_played_as_recorded() {
    let vectors = Vectors::read("agent");
    for (title, lines) in &vectors.cases {
        let mut actor = Actor::new(vectors.script(lines), rules(lines));
        let (mut now, mut output) = (Duration::ZERO, VecDeque::new());
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if ["<", "after", "closed", "forwarded"].contains(&word) {
                let found: String = output.pop_front().unwrap_or_default();
                let fits = found.starts_with(word) && has(&found, rest);
                assert!(fits, "{title}: {found:?} instead of {line}");
                continue;
            }
            assert!(output.is_empty(), "{title}: {output:?} before {line}");
            match word {
                ">" | ">>" => actor.receive(&Frame::from(rest.to_owned()), now),
                "live" => actor.receive_live(&Frame::from(rest.to_owned())),
                "ends" => actor.end(),
                "lost" => actor.lose_live(),
                "now" => now = parse_duration(rest).unwrap(),
                "notice" => {
                    let notice = actor.notice().unwrap_or_default();
                    assert!(has(&notice, rest), "{title}: {notice} instead of {rest}");
                }
                "no" => assert_eq!(actor.notice(), None, "{title}"),
                "with" | "recorded" => continue,
                other => panic!("{title}: {other}"),
            }
            if word != ">>" {
                agent_output(&mut actor, &mut now, &mut output);
            }
        }
        assert!(output.is_empty(), "{title}: {output:?} at the end");
    }
}

#[test]
fn the_client_is_played_as_recorded() {
    let mut vectors = Vectors::read("client");
    vectors.conversations.insert("talk".to_owned(), talk());
    let timeouts = Timeouts {
        settle: Duration::from_secs(1),
        response: Duration::from_secs(60),
    };
    for (title, lines) in &vectors.cases {
        let recorded = vectors.script(lines);
        let mut driver = Driver::new(Arc::clone(&recorded), timeouts);
        let (mut now, mut output, mut wait) = (Duration::ZERO, VecDeque::new(), None);
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let compared = || compare(&recorded, driver.live(), &IgnoreRules::default());
            match word {
                ">" => {
                    let found: String = output.pop_front().unwrap_or_default();
                    assert!(has(&found, rest), "{title}: {found:?} instead of {line}");
                    continue;
                }
                "wait" => {
                    assert_eq!(wait, parse_duration(rest).ok(), "{title}");
                    continue;
                }
                "same" => assert_eq!(compared().differences, [], "{title}"),
                "turns" => {
                    let found = compared();
                    let turns: Vec<String> = found.turns.iter().map(u64::to_string).collect();
                    assert_eq!(format!("{}, steps {}", turns.join(" "), found.steps), rest);
                }
                "differs" => {
                    let found = compared().differences;
                    let found = found
                        .iter()
                        .map(|one| format!("{} {} {}", one.kind, one.turn, one.title));
                    let found: Vec<String> = found.collect();
                    assert!(
                        found.iter().any(|one| one == rest),
                        "{title}: {found:?}, not {rest}"
                    );
                }
                "problem" => {
                    let found = driver.problems();
                    assert!(
                        found.iter().any(|one| one.contains(rest)),
                        "{title}: {found:?}"
                    );
                }
                _ => {}
            }
            assert!(output.is_empty(), "{title}: {output:?} before {line}");
            let hello = [
                r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#,
                r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-new"}}"#,
            ];
            let received = match word {
                "<" | "<<" => &[rest][..],
                "prompted" => &hello[..],
                "begins" => &[],
                "pass" => {
                    now += wait.unwrap();
                    &[]
                }
                "closes" => {
                    driver.close();
                    continue;
                }
                "ends" => {
                    driver.end();
                    continue;
                }
                _ => continue,
            };
            let mut read = |driver: &mut Driver| loop {
                match driver.next(now) {
                    DriverAction::Send(frame) => output.push_back(text_of(&frame)),
                    DriverAction::Wait(until) => return wait = Some(until - now),
                    DriverAction::Done => return wait = None,
                }
            };
            if word == "prompted" {
                read(&mut driver);
            }
            for line in received {
                driver.receive(&Frame::from((*line).to_owned()), now);
                if word != "<<" {
                    read(&mut driver);
                }
            }
            match word {
                "prompted" => output.clear(),
                "begins" | "pass" => read(&mut driver),
                _ => {}
            }
        }
        assert!(output.is_empty(), "{title}: {output:?} at the end");
    }
}

#[test]
fn an_error_in_a_fault_schedule_names_its_line() {
    for wrong in [
        "after x drop",
        "before 3 drop",
        "after 3 explode",
        "after 3 delay 5",
        "after 3 error x",
        "after 3 drop it",
    ] {
        let fault = InjectedFault::parse_all(&format!("# slow\n{wrong}")).unwrap_err();
        assert!(fault.starts_with("line 2: "), "{wrong}: {fault}");
    }
    assert!("0".parse::<Speed>().is_err() && "fast".parse::<Speed>().is_err());
}

/// The differences between `talk` and the same with another text in it.
fn differences(from: &str, to: &str, places: &[&str], messages: &[&str]) -> usize {
    let text = talk();
    assert!(text.contains(from), "{from}");
    let ignored = IgnoreRules {
        level: CompareLevel::Exact,
        places: places.iter().map(|place| place.parse().unwrap()).collect(),
        messages: messages.iter().map(|&text| text.to_owned()).collect(),
    };
    let other = script(&text.replace(from, to));
    compare(&script(&text), &other, &ignored).differences.len()
}

#[test]
fn ignored_volatile_and_cut_texts_make_no_difference() {
    let raw = (
        r#""toolCallId":"t"}}}"#,
        r#""toolCallId":"t","rawOutput":5}}}"#,
    );
    for (places, messages, expected) in [
        (&[][..], &[][..], 1),
        (&["/params/update/rawOutput"], &[], 0),
        (&["/params/*/rawOutput"], &[], 0),
        (&["/result/update/rawOutput"], &[], 1),
        (&[], &["\"sessionUpdate\":\"tool_call\""], 0),
        // This ignores notifications only: without its request an answer would make no sense.
        (&[], &["optionId"], 1),
    ] {
        let found = differences(raw.0, raw.1, places, messages);
        assert_eq!(found, expected, "{places:?} {messages:?}");
    }
    for (from, to, expected) in [
        (r#""used":1"#, r#""used":2000"#, 0),
        (r#""text":"hm""#, r#""text":"hm, let me think""#, 0),
        (r#""text":"hm""#, r#""text":"h""#, 0),
        (r#""text":"hm""#, r#""text":"no""#, 1),
        // A prompt is not a text that may be cut.
        (r#""text":"long""#, r#""text":"longer""#, 1),
    ] {
        assert_eq!(differences(from, to, &[], &[]), expected, "{to}");
    }
    let redacted = talk().replace("in /old/ws/a", "‹redacted:012345›");
    let compared = compare(
        &script(&redacted),
        &script(&talk()),
        &IgnoreRules::default(),
    );
    assert_eq!(compared.differences, []);
    let plain = "> {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n";
    let noisy = format!("< starting at 10:15\n{plain}");
    let other = format!("< starting at 10:16\n{plain}");
    for (left, right, same) in [
        (&*noisy, plain, true),
        (&noisy, &other, true),
        (plain, &noisy, false),
    ] {
        let found = compare(&script(left), &script(right), &IgnoreRules::default());
        assert_eq!(found.differences.is_empty(), same, "{left}{right}");
    }
}
