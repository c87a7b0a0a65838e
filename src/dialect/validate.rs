//! The validation of a table as a whole.
//!
//! `mappings/README.md` states the rules of validation; each fault names the rule, the place and
//! the remedy. `table` reports what does not fit the schema, `vectors` examples that fail.

use std::mem::discriminant;

use super::methods::{CANONICAL, is_known};
use super::pointer::JsonPointer;
use super::table::{
    Case, Expect, FaultList, Guard, Literal, PROMPTING, Rest, Row, Rule, Selector, Table, Way,
};
use super::text;
use jsonrpc::nearest;

/// Maximum depth of rows in rows.
const MAX_DEPTH: usize = 16;

/// Methods of the unstable protocol with names like those of others.
const UNSTABLE: [&str; 2] = ["session/set_model", "session/fork"];

/// Checks a whole table; `places` are the indexes of its rules in the file.
pub(super) fn check(table: &Table, places: &[usize], faults: &FaultList<'_>) {
    let check = Validation {
        table,
        places,
        faults,
        guards: table.rules.iter().map(guards).collect(),
    };
    for (at, clue) in table.detect.iter().enumerate() {
        if clue.messages != 1 {
            let what = match clue.messages {
                0 => "this clue looks at no message",
                _ => "this clue looks at several things",
            };
            let remedy = "say all in one guard, as initialize_result with /agentInfo/name";
            faults.add(&format!("/detect/{at}"), what, remedy);
        }
    }
    for at in 0..table.rules.len() {
        check.rule(at);
    }
    for (name, cases) in &table.shapes {
        for (at, case) in cases.iter().enumerate() {
            check.case(case, false, None, &format!("/shapes/{name}/{at}"));
        }
    }
}

/// Reports what a table without faults should have.
pub(super) fn advise(table: &Table, faults: &FaultList<'_>) {
    for (at, rule) in table.rules.iter().enumerate() {
        let place = format!("/rules/{at}");
        if rule.why.is_empty() {
            let remedy = "add `why`: what the peer does, and how that is known";
            faults.add(&place, "the rule has no reason", remedy);
        }
        if rule.examples().is_empty() {
            let remedy = "add one message in both columns to `examples`";
            faults.add(&place, "the rule has no example", remedy);
        }
        let name = rule.on.what.names().canonical.as_deref();
        if let Some((name, near)) = name.and_then(|name| Some((name, nearest_method(name)?))) {
            let what = format!("ACP v1 has no method `{name}`");
            faults.add(
                &format!("{place}/on"),
                what,
                format!("did you mean `{near}`?"),
            );
        }
    }
}

/// The method of ACP that was probably meant by an unknown one.
fn nearest_method(method: &str) -> Option<&'static str> {
    let is_meant = is_known(method) || UNSTABLE.contains(&method) || method == "*";
    nearest(method, CANONICAL).filter(|_| !is_meant)
}

/// The check of one table.
struct Validation<'t> {
    table: &'t Table,
    places: &'t [usize],
    faults: &'t FaultList<'t>,
    /// The guards of all rules, in both ways.
    guards: Vec<[Vec<Guard>; 2]>,
}

impl Validation<'_> {
    fn rule(&self, at: usize) {
        let (rule, earlier) = (&self.table.rules[at], &self.table.rules[..at]);
        let place = format!("/rules/{}", self.places[at]);
        let fault = |key: &str, what: String, remedy: &str| {
            self.faults.add(&format!("{place}{key}"), what, remedy);
        };
        if earlier.iter().any(|other| other.id == rule.id) {
            let what = format!("the id `{}` is taken", rule.id);
            fault("/id", what, "ids are unique; choose another");
        }
        let names = rule.on.what.names();
        if names.dialect.is_none() && names.canonical.is_none() {
            let remedy = "add dialect, canonical or both";
            fault("/on", "the method has no name".into(), remedy);
        }
        // Only one clashing rule is reported for each: otherwise every pair of equal rules would be
        // a fault.
        let clash = (0..at).find_map(|other| Some((other, self.clash(at, other)?)));
        if let Some((other, way)) = clash {
            let id = &self.table.rules[other].id;
            let place = format!("/rules/{}", self.places[other]);
            let place = self.faults.written(&place);
            let what = format!(
                "both this rule and `{id}` (the rule at {place}) can be for one message when \
                 {way} it"
            );
            let remedy = "make them cases of one rule, or let the guards exclude each other";
            fault("/when", what, remedy);
        }
        let lossy = rule.base.lossy.is_some();
        if rule.loses.iter().any(|loss| loss.at.is_empty()) {
            let remedy = "add `\"at\": [pointers]`; \"\" is the whole message";
            fault("/loses", "this loss is nowhere".into(), remedy);
        }
        if !rule.loses.is_empty() && rule.all_cases().all(|case| case.lossy.is_none()) {
            let remedy = "add `lossy` and say it in words, too";
            fault("/loses", "what is lost is not stated".into(), remedy);
        }
        self.case(&rule.base, false, None, &place);
        for (index, case) in rule.cases.iter().enumerate() {
            self.case(
                case,
                lossy,
                Some(&rule.base),
                &format!("{place}/cases/{index}"),
            );
        }
    }

    /// The way in which two rules can both apply to one message.
    fn clash(&self, at: usize, other: usize) -> Option<&'static str> {
        let (one, two) = (&self.table.rules[at], &self.table.rules[other]);
        let names = [one, two].map(|rule| rule.on.what.names());
        let answers = matches!(one.on.what, Selector::Answers(_));
        // An answer is distinguished by both names of the method that it answers.
        let same_pair = !answers || names[0] == names[1];
        let same_messages = discriminant(&one.on.what) == discriminant(&two.on.what)
            && same_pair
            && one.on.from == two.on.from
            && one.on.kinds == two.on.kinds;
        let clashes = |way: &Way| {
            let [left, right] = [at, other].map(|rule| &self.guards[rule][*way as usize]);
            same_messages
                && names[0].before(*way).is_some()
                && names[0].before(*way) == names[1].before(*way)
                && one.base.applies(*way)
                && two.base.applies(*way)
                && !left
                    .iter()
                    .all(|left| right.iter().all(|right| exclude(left, right)))
        };
        let way = Way::BOTH.into_iter().find(clashes)?;
        Some(way.pick("reading", "writing"))
    }

    /// Checks a case, together with the base of its rule.
    fn case(&self, case: &Case, lossy: bool, base: Option<&Case>, at: &str) {
        let lossy = lossy || case.lossy.is_some();
        let rows_at = format!("{at}/rows");
        if case.only.is_some() && !lossy {
            let remedy = "add `lossy` and say what the way back cannot tell";
            self.faults
                .add(at, "a case for one way only loses something", remedy);
        }
        if matches!(case.rest, Rest::Drop(_)) && !lossy {
            let place = format!("{at}/rest");
            self.faults
                .add(&place, "what is dropped is lost", "add `lossy`");
        }
        self.rows(&case.rows, lossy, &rows_at, 0);
        let works = |way: &Way| case.applies(*way) && base.is_none_or(|base| base.applies(*way));
        for way in Way::BOTH.into_iter().filter(works) {
            let rows = base.map_or(&[][..], |base| &*base.rows);
            let rows = rows.iter().chain(&case.rows);
            // A row that only fills an empty place may share it with a row that writes it.
            let writes = |row: &&Row| row.before(way).is_some() || row.constant.is_some();
            let targets: Vec<&JsonPointer> = rows
                .filter(|row| row.applies(way))
                .filter(writes)
                .filter_map(|row| row.after(way))
                .collect();
            for (index, place) in targets.iter().enumerate() {
                if let Some(other) = targets[..index].iter().find(|other| other.overlaps(place)) {
                    let what = format!("two rows write `{other}` and `{place}`, which overlap");
                    let remedy = "keep one, or give each the way it is for with `only`";
                    self.faults.add(&rows_at, what, remedy);
                }
            }
        }
    }

    fn rows(&self, rows: &[Row], lossy: bool, at: &str, depth: usize) {
        if depth > MAX_DEPTH {
            let remedy = "use a named shape";
            return self.faults.add(at, "rows nest too deeply", remedy);
        }
        for (index, row) in rows.iter().enumerate() {
            self.row(row, lossy, &format!("{at}/{index}"), depth);
        }
    }

    fn row(&self, row: &Row, lossy: bool, at: &str, depth: usize) {
        let fault = |key: &str, what: &str, remedy: &str| {
            self.faults.add(&format!("{at}{key}"), what, remedy)
        };
        let columns = [&row.dialect, &row.canonical].into_iter().flatten().count();
        if columns == 0 {
            let remedy = "add `dialect`, `canonical` or both";
            fault("", "the row names no place", remedy);
        }
        if columns < 2 && row.fill_count() == 0 && row.drop.is_none() {
            let remedy = "say what becomes of it with default, const, recall, derive or drop";
            fault("", "the row has one column only", remedy);
        }
        if columns == 2 && row.constant.is_some() {
            let what = "a constant is not carried from one column to the other";
            fault("", what, "give `const` to a row with one column");
        }
        if row.fill_count() > 1 {
            let remedy = "keep one of default, const, recall, derive";
            fault("", "a row is filled in one way", remedy);
        }
        if let Some(recall) = &row.recall {
            let own = self.table.memory.keys().map(String::as_str);
            let place = format!("{at}/recall");
            self.known(
                "slot",
                &recall.slot,
                std::iter::once(PROMPTING).chain(own),
                &place,
            );
        }
        for name in row.shapes() {
            let shapes = self.table.shapes.keys().map(String::as_str);
            self.known("shape", name, shapes, &format!("{at}/shape"));
        }
        if let Some(by) = row.convert
            && !by.has_inverse()
            && !lossy
            && row.only.is_none()
        {
            let remedy = "add `lossy` to the rule and say what is lost";
            fault("/as", &format!("`{by}` has no inverse"), remedy);
        }
        let both = &row.values.0;
        for (index, (one, two)) in both.iter().enumerate() {
            let is_same = |(left, right): &(Literal, Literal)| {
                text::same(&left.0, &one.0) || text::same(&right.0, &two.0)
            };
            if both[..index].iter().any(is_same) {
                let shown = String::from_utf8_lossy(&two.0);
                let what = format!("the values are not injective: {shown} is met twice");
                let remedy = "put the pair that is not written back into `read_values`";
                fault("/values", &what, remedy);
            }
        }
        let reads = (!row.read_values.0.is_empty() || row.other.is_some()) && !row.park;
        if (reads || !row.write_values.0.is_empty()) && !lossy {
            let remedy = "add `park`, or `lossy` and say what is lost";
            fault("", "values of one way only lose something", remedy);
        }
        for (key, rows) in ["in", "each"].into_iter().zip(row.inner_rows()) {
            self.rows(rows, lossy, &format!("{at}/{key}"), depth + 1);
        }
    }

    /// Reports a name that nothing in the table has.
    fn known<'k>(&self, kind: &str, name: &str, known: impl Iterator<Item = &'k str>, at: &str) {
        let known: Vec<&str> = known.collect();
        if !known.contains(&name) {
            let remedy = format!("{kind}s of this table: {}", known.join(" "));
            self.faults
                .add(at, format!("no {kind} is called `{name}`"), remedy);
        }
    }
}

/// The guards under which a rule applies, in both ways: each case's combined with the base's.
fn guards(rule: &Rule) -> [Vec<Guard>; 2] {
    Way::BOTH.map(|way| {
        let base = rule.base.before(way);
        if rule.cases.is_empty() {
            return vec![Guard(base.to_vec())];
        }
        let cases = rule.cases.iter().filter(|case| case.applies(way));
        cases
            .map(|case| Guard([base, case.before(way)].concat()))
            .collect()
    })
}

/// Whether no message meets both guards.
fn exclude(one: &Guard, two: &Guard) -> bool {
    one.0.iter().any(|(place, left)| {
        two.0.iter().any(|(other, right)| {
            place == other && (disjoint(left, right) || disjoint(right, left))
        })
    })
}

fn disjoint(one: &Expect, two: &Expect) -> bool {
    let same = |a: &Literal, b: &Literal| text::same(&a.0, &b.0);
    match (one, two) {
        (Expect::Absent(true), Expect::Absent(absent)) => !absent,
        (Expect::Absent(true), Expect::NotIn(_)) => false,
        (Expect::Absent(true), _) => true,
        (Expect::Const(a), Expect::Const(b)) => !same(a, b),
        (Expect::Const(a), Expect::In(all)) => !all.iter().any(|b| same(a, b)),
        (Expect::Const(a), Expect::NotIn(all)) => all.iter().any(|b| same(a, b)),
        (Expect::Const(a), Expect::Is(types)) => !types.contains(&text::JsonType::of(&a.0)),
        (Expect::Const(a), Expect::Matches(pattern)) => {
            !text::string(&a.0).is_some_and(|text| pattern.0.is_match(&text))
        }
        (Expect::In(some), other) => some.iter().all(|literal| {
            let literal = Expect::Const(literal.clone());
            !matches!(other, Expect::Absent(_)) && disjoint(&literal, other)
        }),
        (Expect::Is(some), Expect::Is(all)) => !some.iter().any(|kind| all.contains(kind)),
        (Expect::Matches(_), Expect::Is(types)) => !types.contains(&text::JsonType::String),
        _ => false,
    }
}
