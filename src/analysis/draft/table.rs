//! Writes a table in TOML: short forms for what could be guessed, and comments for what a person has to
//! decide.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::deviations::{Deviations, Group, Section};
use super::guess::{Guess, candidates, guess};
use super::toml_text::{comment, key, literal, quoted};
use crate::text::counted;
use acp::Checker;
use conversation::DialectChoice;
use conversation::offline::TranslatorPair;
use dialect::{Library, TableFaults};
use jsonrpc::{Frame, Side, printable, truncated};

/// Longest text, list and object in an example, and longest example, in bytes.
const MAX_TEXT: usize = 60;
const MAX_ITEMS: usize = 4;
const MAX_NAMES: usize = 16;
const MAX_EXAMPLE: usize = 2 << 10;

/// A drafted table.
#[derive(Debug)]
pub struct Drafted {
    /// The file.
    pub text: String,
    /// How many rules it has.
    pub rules: usize,
    /// How many places need a decision.
    pub open: usize,
}

/// A rule: its messages, what they are, and an example in both columns.
struct Rule {
    group: Group,
    guess: Guess,
    example: Option<[String; 2]>,
    /// Whether the example is for reading alone.
    reads: bool,
}

/// Drafts the table `name` for its `file`, from what was `found` in a recording. It has no faults.
///
/// # Errors
/// It has faults all the same.
pub fn write(
    name: &str,
    file: &str,
    recording: &str,
    mut found: Deviations,
    library: &Library,
) -> Result<Drafted, TableFaults> {
    let rule = |group: Group| Rule {
        guess: guess(&group),
        group,
        example: None,
        reads: false,
    };
    let groups = std::mem::take(&mut found.groups).into_iter();
    let mut rules: Vec<Rule> = groups.map(rule).collect();
    rules.sort_by_key(|rule| rule.group.section.key() != "update");
    let head = head(name, file, recording, &found);
    // Weakens the rules that have faults until there are none.
    let settle = |rules: &mut [Rule]| loop {
        let drafted = table(&head, rules, recording, &found);
        let mut known = library.clone();
        let added = known.add(file, &drafted.text).and_then(|_| {
            let own = known.source(name);
            own.map_or(Ok(()), |own| known.check_examples(own))
        });
        let Err(faults) = added else {
            return Ok((known, drafted));
        };
        let faulty = (rules.iter_mut()).filter(|rule| rule.has_one_of(&faults));
        if faulty
            .map(Rule::weaken)
            .filter(|is_weaker| *is_weaker)
            .count()
            == 0
        {
            return Err(faults);
        }
    };
    let known = Arc::new(settle(&mut rules)?.0);
    for rule in &mut rules {
        rule.add_example(&known, name);
    }
    settle(&mut rules).map(|(_, drafted)| drafted)
}

/// What precedes the rules.
fn head(name: &str, file: &str, recording: &str, found: &Deviations) -> String {
    let file = shell_words::quote(file);
    let [recording, file] = [recording, &file].map(|text| printable(text.as_bytes()));
    let extends = match &*found.dialect {
        "canonical" => String::new(),
        dialect => format!("extends = [{}]\n", quoted(dialect)),
    };
    let (title, detect) = match &found.agent {
        Some((agent, version)) => (
            format!("{agent} {version}").trim().to_owned(),
            format!("[[detect]]\nagentInfo = {{ name = {} }}\n", quoted(agent)),
        ),
        None => (name.to_owned(), NAMELESS.to_owned()),
    };
    let (name, title) = (quoted(name), quoted(&title));
    format!(
        "# Drafted from {recording}.\n# A line with … needs your decision. Then:\n\
         #   acp-relay dialect check {file}\n\
         #   acp-relay connect --table {file} -- AGENT\n\
         format = 1\ndialect = {name}\ntitle = {title}\nspeaker = \"agent\"\n{extends}\n\
         # How the relay recognises the agent: its answer to `initialize`.\n{detect}"
    )
}

/// The whole table.
fn table(head: &str, rules: &[Rule], recording: &str, found: &Deviations) -> Drafted {
    let mut drafted = Drafted {
        text: head.to_owned(),
        rules: 0,
        open: usize::from(found.agent.is_none()),
    };
    for rule in rules {
        rule.write(recording, &mut drafted);
    }
    if found.others > 0 {
        let others = found.others;
        drafted.text.push('\n');
        let what = format!("{others} more messages deviate in a way that has no short form.");
        comment(&mut drafted.text, &what);
    }
    drafted
}

/// The clue to an agent without a name.
const NAMELESS: &str = "# It states no name, so choose the dialect with `--agent-dialect`.
# [[detect]]
# agentInfo = { name = \"…\" }
";

impl Rule {
    /// Where the messages are.
    fn why(&self, from: &str) -> String {
        let (count, line) = (counted(self.group.count, "message"), self.group.line);
        format!("{count} in {from}, the first in line {line}.")
    }

    fn write(&self, from: &str, to: &mut Drafted) {
        let text = &mut to.text;
        let (group, guess) = (&self.group, &self.guess);
        let (section, name) = (group.section.key(), key(&group.name));
        let other_name = guess.is.as_ref().filter(|is| **is != group.name);
        text.push('\n');
        if other_name.is_none() && guess.members.is_empty() {
            comment(text, &self.why(from));
            if let Some(sample) = group.samples.first() {
                let members = shortened(group.section.members(sample), &[]).to_string();
                comment(text, &format!("such as {}", truncated(&members, MAX_TEXT)));
            }
            comment(text, &format!("[{section}.{name}]"));
            if guess.is.is_none() {
                let known = candidates(group.section).into_iter().map(|(name, _)| name);
                let known = known.collect::<Vec<_>>().join(", ");
                comment(text, &format!("is = \"…\"  # one of {known}"));
                comment(text, "drop = \"…\"  # or: why it may be left out");
                to.open += 1;
            } else if !guess.open.is_empty() {
                comment(text, &format!("[{section}.{name}.members]"));
            }
            return self.write_open(to);
        }
        to.rules += 1;
        let _ = writeln!(text, "[{section}.{name}]");
        if let Some(is) = other_name {
            let _ = writeln!(text, "is = {}", quoted(is));
        }
        let _ = writeln!(text, "why = {}", quoted(&self.why(from)));
        if !guess.members.is_empty() || !guess.open.is_empty() {
            let _ = writeln!(text, "[{section}.{name}.members]");
        }
        for (path, form) in &guess.members {
            let _ = writeln!(text, "{} = {form}", quoted(path));
        }
        self.write_open(to);
        if let Some([dialect, canonical]) = &self.example {
            let way = if self.reads { "way = \"read\"\n" } else { "" };
            let (dialect, canonical) = (literal(dialect), literal(canonical));
            let _ = writeln!(
                to.text,
                "[[{section}.{name}.examples]]\n{way}dialect = {dialect}\ncanonical = {canonical}"
            );
        }
    }

    /// What needs a decision, a comment each.
    fn write_open(&self, to: &mut Drafted) {
        to.open += self.guess.open.len();
        for line in &self.guess.open {
            comment(&mut to.text, line);
        }
    }

    /// Whether one of these faults is in it.
    fn has_one_of(&self, faults: &TableFaults) -> bool {
        let name = jsonptr::Token::new(&self.group.name).encoded().to_owned();
        let place = format!("/{}/{name}", self.group.section.key());
        faults.0.iter().any(|fault| {
            let inside = fault.pointer.strip_prefix(&place);
            inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Gives up a part of a rule that has faults; `false` if nothing is left.
    fn weaken(&mut self) -> bool {
        match (&self.example, self.reads, &self.guess.is) {
            (Some(_), false, _) => self.reads = true,
            (Some(_), true, _) => self.example = None,
            (None, _, Some(_)) => self.guess = Guess::default(),
            (None, _, None) => return false,
        }
        true
    }

    /// Cuts an example out of the recording, without what needs a decision: a message, and what the
    /// rule makes of it, which is ACP.
    fn add_example(&mut self, library: &Arc<Library>, name: &str) {
        let (section, Some(is)) = (self.group.section, &self.guess.is) else {
            return;
        };
        let method = (section == Section::Answers).then_some(&**is);
        let own = format!("{name}/{}-{}", section.key(), self.group.name);
        let named = DialectChoice::Named(name.to_owned());
        self.example = self.group.samples.iter().find_map(|sample| {
            let dialect = shortened(sample, &self.guess.unknown).to_string();
            let pair = TranslatorPair::new(library, &DialectChoice::Canonical, &named);
            let mut pair = pair.ok()?;
            if let Some(method) = method {
                let request = json!({"jsonrpc": "2.0", "id": sample["id"], "method": method});
                let request = Frame::from(request.to_string());
                pair.read(Side::Client, &request);
                pair.write(Side::Agent, &request);
            }
            let stage = pair.read(Side::Agent, &Frame::from(dialect.clone()));
            let mut fired = stage.outcome.fired.iter();
            let ([made], true) = (&stage.after[..], fired.any(|rule| rule.to_string() == own))
            else {
                return None;
            };
            let verdict = Checker::new(true).check_as(Some(Side::Agent), made, method);
            let deviates = verdict
                .violations
                .iter()
                .any(|one| one.kind.is_of_dialect());
            let canonical = String::from_utf8_lossy(made.as_bytes()).into_owned();
            let fits = dialect.len().max(canonical.len()) <= MAX_EXAMPLE;
            (fits && !deviates).then_some([dialect, canonical])
        });
    }
}

/// A part of a message with its long texts, lists and objects cut, and without members of these names
/// and elements with these values.
fn shortened(value: &Value, without: &[String]) -> Value {
    let is_out = |value: &Value| without.iter().any(|one| value == one.as_str());
    match value {
        Value::String(text) => truncated(text, MAX_TEXT).into(),
        Value::Array(items) => {
            let has_one =
                |item: &&Value| item.as_object().is_some_and(|all| all.values().any(is_out));
            let items = items.iter().filter(|item| !has_one(item)).take(MAX_ITEMS);
            items.map(|item| shortened(item, without)).collect()
        }
        Value::Object(members) => {
            let some = members.iter().filter(|(name, _)| !without.contains(name));
            let some = some.take(MAX_NAMES);
            let some = some.map(|(name, value)| (name.clone(), shortened(value, without)));
            Value::Object(some.collect())
        }
        value => value.clone(),
    }
}
