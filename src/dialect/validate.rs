//! The validation of a table that needs no translation.
//!
//! `mappings/README.md` states the rules of validation; each fault names the rule, the place and
//! the remedy. `table` reports unknown words and invalid pointers, `library` examples that fail.

use std::mem::discriminant;

use super::pointer::JsonPointer;
use super::table::{
    Case, Conversion, Each, Expect, FaultList, Fill, Guard, Literal, PROMPTING, Recall, Rest, Row,
    Rule, Selector, Shape, Table, Way,
};
use super::text;

/// Checks a whole table.
pub(super) fn check(table: &Table, faults: &FaultList<'_>) {
    let check = Validation { table, faults };
    let guards = |rule| [Way::Read, Way::Write].map(|way| case_guards(rule, way));
    let guards: Vec<[Vec<Guard>; 2]> = table.rules.iter().map(guards).collect();
    for at in 0..table.rules.len() {
        check.rule(at, &guards);
    }
    for (name, Shape(cases)) in &table.shapes {
        for (at, case) in cases.iter().enumerate() {
            check.case(case, false, None, &format!("/shapes/{name}/{at}"));
        }
    }
}

/// The check of one table.
struct Validation<'t> {
    table: &'t Table,
    faults: &'t FaultList<'t>,
}

impl Validation<'_> {
    /// Checks a rule. `guards` are those of all rules, in both ways.
    fn rule(&self, at: usize, guards: &[[Vec<Guard>; 2]]) {
        let (rule, earlier) = (&self.table.rules[at], &self.table.rules[..at]);
        let fault = |place: &str, what: String, remedy: &str| {
            self.faults
                .add(&format!("{}{place}", rule.at), what, remedy);
        };
        if earlier.iter().any(|other| other.id == rule.id) {
            let what = format!("the id `{}` is taken", rule.id);
            fault("/id", what, "ids are unique; choose another");
        }
        if rule.examples.is_empty() {
            let remedy = "add one message in both columns";
            fault("", "the rule has no example".into(), remedy);
        }
        // Only one clashing rule is reported for each: otherwise every pair of equal rules would be
        // a fault.
        let clashes = |(other, two): (&Rule, &[Vec<Guard>; 2])| {
            let mut ways = [(Way::Read, "reading"), (Way::Write, "writing")].into_iter();
            let (_, way) = ways.find(|(way, _)| {
                let at_once = (&guards[at][*way as usize], &two[*way as usize]);
                clash(rule, other, *way, at_once)
            })?;
            let (id, place) = (&other.id, &other.at);
            Some(format!(
                "both this rule and `{id}` (the rule at {place}) can be for one message when {way} it"
            ))
        };
        if let Some(what) = earlier.iter().zip(guards).find_map(clashes) {
            let remedy = "make them cases of one rule, or let the guards exclude each other";
            fault("/when", what, remedy);
        }
        let lossy = rule.base.lossy.is_some();
        let stated = lossy || rule.cases.iter().any(|case| case.lossy.is_some());
        if rule.loses.iter().any(|loss| loss.at.is_empty()) {
            let remedy = "add `\"at\": [pointers]`; \"\" is the whole message";
            fault("/loses", "this loss is nowhere".into(), remedy);
        }
        if !rule.loses.is_empty() && !stated {
            let remedy = "add `lossy` and say it in words, too";
            fault("/loses", "what is lost is not stated".into(), remedy);
        }
        self.case(&rule.base, false, None, &rule.at);
        for (index, case) in rule.cases.iter().enumerate() {
            let at = format!("{}/cases/{index}", rule.at);
            self.case(case, lossy, Some(&rule.base), &at);
        }
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
        self.rows(&case.rows, lossy, &rows_at);
        let works = |way: &Way| case.applies(*way) && base.is_none_or(|base| base.applies(*way));
        for way in [Way::Read, Way::Write].into_iter().filter(works) {
            let rows = base
                .into_iter()
                .flat_map(|base| &base.rows)
                .chain(&case.rows);
            // A row that only fills an empty place may share it with a row that writes it.
            let writes =
                |row: &&Row| row.before(way).is_some() || matches!(row.fill, Some(Fill::Const(_)));
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

    fn rows(&self, rows: &[Row], lossy: bool, at: &str) {
        for (index, row) in rows.iter().enumerate() {
            let at = format!("{at}/{index}");
            let fault = |what: &str, remedy: &str| self.faults.add(&at, what, remedy);
            let columns = [&row.dialect, &row.canonical].into_iter().flatten().count();
            if columns == 0 {
                let remedy = "add `dialect`, `canonical` or both";
                fault("the row names no place", remedy);
            }
            if columns < 2 && row.fill.is_none() && row.drop.is_none() {
                let remedy = "say what becomes of it with default, const, recall, derive or drop";
                fault("the row has one column only", remedy);
            }
            if columns == 2 && matches!(row.fill, Some(Fill::Const(_))) {
                let remedy = "give `const` to a row with one column";
                let what = "a constant is not carried from one column to the other";
                fault(what, remedy);
            }
            if let Some(Fill::Recall(Recall { slot, .. })) = &row.fill {
                let own = self.table.memory.keys().map(String::as_str);
                let known: Vec<&str> = std::iter::once(PROMPTING).chain(own).collect();
                self.known("slot", slot, &known, &format!("{at}/recall"));
            }
            for conversion in &row.convert {
                self.conversion(conversion, lossy, row.only, &at);
            }
        }
    }

    /// Reports a name that nothing in the table has.
    fn known(&self, kind: &str, name: &str, known: &[&str], at: &str) {
        if !known.contains(&name) {
            let remedy = format!("{kind}s of this table: {}", known.join(" "));
            self.faults
                .add(at, format!("no {kind} is called `{name}`"), remedy);
        }
    }

    fn conversion(&self, conversion: &Conversion, lossy: bool, only: Option<Way>, at: &str) {
        match conversion {
            Conversion::As(by) => {
                if !by.has_inverse() && !lossy && only.is_none() {
                    let remedy = "add `lossy` to the rule and say what is lost";
                    let what = format!("`{by}` has no inverse");
                    self.faults.add(&format!("{at}/as"), what, remedy);
                }
            }
            Conversion::In(rows) | Conversion::Each(Each::Rows(rows)) => {
                self.rows(rows, lossy, &format!("{at}/each"));
            }
            Conversion::Shape(name) | Conversion::Each(Each::Shape { shape: name }) => {
                let shapes = self.table.shapes.keys();
                let known: Vec<&str> = shapes.map(String::as_str).collect();
                self.known("shape", name, &known, &format!("{at}/shape"));
            }
            Conversion::Values(values) => {
                let both = &values.both;
                for (index, (one, two)) in both.iter().enumerate() {
                    let twice = both[..index].iter().any(|(left, right)| {
                        text::same(&left.0, &one.0) || text::same(&right.0, &two.0)
                    });
                    if twice {
                        let shown = String::from_utf8_lossy(&two.0);
                        let what = format!("the values are not injective: {shown} is met twice");
                        let remedy = "put the pair that is not written back into `read_values`";
                        self.faults.add(&format!("{at}/values"), what, remedy);
                    }
                }
                let reads = (!values.read.is_empty() || values.other.is_some()) && !values.park;
                if (reads || !values.write.is_empty()) && !lossy {
                    let remedy = "add `park`, or `lossy` and say what is lost";
                    self.faults
                        .add(at, "values of one way only lose something", remedy);
                }
            }
        }
    }
}

/// Whether two rules can both apply to one message in that way. `cases` are the guards of both.
fn clash(one: &Rule, two: &Rule, way: Way, cases: (&Vec<Guard>, &Vec<Guard>)) -> bool {
    let same_kind = discriminant(&one.on.what) == discriminant(&two.on.what);
    let names = [one, two].map(|rule| rule.on.what.names().before(way));
    let answers = matches!(one.on.what, Selector::Answers(_));
    // An answer is distinguished by both names of the method that it answers.
    let same_pair = !answers || one.on.what.names() == two.on.what.names();
    same_kind
        && same_pair
        && one.on.from == two.on.from
        && names[0].is_some()
        && names[0] == names[1]
        && one.on.kinds == two.on.kinds
        && one.base.applies(way)
        && two.base.applies(way)
        && !exclude(one.base.before(way), two.base.before(way))
        && !(cases.0.iter()).all(|left| cases.1.iter().all(|right| exclude(left, right)))
}

/// The guards under which a rule applies: each case's combined with the base's.
fn case_guards(rule: &Rule, way: Way) -> Vec<Guard> {
    let base = rule.base.before(way).clone();
    if rule.cases.is_empty() {
        return vec![base];
    }
    let works = rule.cases.iter().filter(|case| case.applies(way));
    works
        .map(|case| base.iter().chain(case.before(way)).cloned().collect())
        .collect()
}

/// Whether no message meets both guards.
fn exclude(one: &Guard, two: &Guard) -> bool {
    one.iter().any(|(place, left)| {
        two.iter().any(|(other, right)| {
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
        (Expect::Const(a), Expect::Matches(regex)) => {
            !text::string(&a.0).is_some_and(|text| regex.is_match(&text))
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
