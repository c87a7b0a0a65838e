//! The validation of a table that needs no translation.
//!
//! `mappings/README.md` states the rules of validation; each fault names the rule, the place and
//! the remedy. `table` reports unknown words and invalid pointers, `library` examples that fail.

use super::pointer::JsonPointer;
use super::table::{
    Case, Conversion, Each, Expect, FaultList, Fill, Guard, Literal, PROMPTING, Rest, Row, Rule,
    Selector, Table, Way,
};
use super::text;

/// Checks a whole table.
pub(super) fn check(table: &Table, faults: &FaultList<'_>) {
    let guards = |rule| [Way::Read, Way::Write].map(|way| case_guards(rule, way));
    let guards: Vec<[Vec<Guard>; 2]> = table.rules.iter().map(guards).collect();
    for (at, rule) in table.rules.iter().enumerate() {
        let pointer = &rule.at;
        let fault = |place: &str, what: String, remedy: &str| {
            faults.add(&format!("{pointer}{place}"), what, remedy);
        };
        if table.rules[..at].iter().any(|other| other.id == rule.id) {
            fault(
                "/id",
                format!("the id `{}` is taken", rule.id),
                "ids are unique; choose another",
            );
        }
        if rule.examples.is_empty() {
            fault(
                "",
                "the rule has no example".into(),
                "add one message in both columns",
            );
        }
        // Only one clashing rule is reported for each: otherwise every pair of equal rules would be
        // a fault.
        let clashes = |(other, two): (&Rule, &[Vec<Guard>; 2])| {
            let way = [(Way::Read, "reading"), (Way::Write, "writing")]
                .into_iter()
                .find(|(way, _)| {
                    let at_once = (&guards[at][*way as usize], &two[*way as usize]);
                    clash(rule, other, *way, at_once)
                });
            Some((other.id.clone(), other.at.clone(), way?.1))
        };
        let others = table.rules[..at].iter().zip(&guards);
        if let Some((id, place, way)) = others.into_iter().find_map(clashes) {
            let what = format!(
                "both this rule and `{id}` (the rule at {place}) can be for one message when {way} it"
            );
            fault(
                "/when",
                what,
                "make them cases of one rule, or let the guards exclude each other",
            );
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
        check_case(table, &rule.base, lossy, None, "", &fault);
        for (at, case) in rule.cases.iter().enumerate() {
            let at = format!("/cases/{at}");
            check_case(table, case, lossy, Some(&rule.base), &at, &fault);
        }
    }
    for (shape, found) in table.shapes.iter().enumerate() {
        for (at, case) in found.cases.iter().enumerate() {
            let fault = |place: &str, what: String, remedy: &str| {
                let pointer = format!("/shapes/{}{place}", table.shapes[shape].name);
                faults.add(&pointer, what, remedy);
            };
            check_case(
                table,
                case,
                case.lossy.is_some(),
                None,
                &format!("/{at}"),
                &fault,
            );
        }
    }
}

type AddFault<'t> = &'t dyn Fn(&str, String, &str);

fn check_case(
    table: &Table,
    case: &Case,
    lossy: bool,
    base: Option<&Case>,
    at: &str,
    fault: AddFault<'_>,
) {
    let lossy = lossy || case.lossy.is_some();
    if case.only.is_some() && !lossy {
        fault(
            at,
            "a case for one way only loses something".into(),
            "add `lossy` and say what the way back cannot tell",
        );
    }
    if matches!(case.rest, Rest::Drop(_)) && !lossy {
        fault(
            &format!("{at}/rest"),
            "what is dropped is lost".into(),
            "add `lossy`",
        );
    }
    check_rows(table, &case.rows, lossy, &format!("{at}/rows"), fault);
    let works = |way: &Way| case.applies(*way) && base.is_none_or(|base| base.applies(*way));
    for way in [Way::Read, Way::Write].into_iter().filter(works) {
        let rows = base
            .into_iter()
            .flat_map(|base| &base.rows)
            .chain(&case.rows)
            .filter(|row| row.applies(way));
        // A row that only fills an empty place may share it with a row that writes it.
        let fills =
            |row: &Row| row.before(way).is_none() && !matches!(row.fill, Some(Fill::Const(_)));
        let targets: Vec<&JsonPointer> = rows
            .filter(|row| row.before(way).is_some() || row.fill.is_some())
            .filter(|row| !fills(row))
            .filter_map(|row| row.after(way))
            .collect();
        for (index, place) in targets.iter().enumerate() {
            if let Some(other) = targets[..index].iter().find(|other| other.overlaps(place)) {
                let what = format!("two rows write `{other}` and `{place}`, which overlap");
                let remedy = "keep one, or give each the way it is for with `only`";
                fault(&format!("{at}/rows"), what, remedy);
            }
        }
    }
}

fn check_rows(table: &Table, rows: &[Row], lossy: bool, at: &str, fault: AddFault<'_>) {
    for (index, row) in rows.iter().enumerate() {
        let at = format!("{at}/{index}");
        let two = row.dialect.is_some() && row.canonical.is_some();
        if row.dialect.is_none() && row.canonical.is_none() {
            fault(
                &at,
                "the row names no place".into(),
                "add `dialect`, `canonical` or both",
            );
        }
        if !two && row.fill.is_none() && row.drop.is_none() {
            let remedy = "say what becomes of it with default, const, recall, derive or drop";
            fault(&at, "the row has one column only".into(), remedy);
        }
        if two && matches!(row.fill, Some(Fill::Const(_))) {
            let remedy = "give `const` to a row with one column";
            fault(
                &at,
                "a constant is not carried from one column to the other".into(),
                remedy,
            );
        }
        if let Some(Fill::Recall(recall)) = &row.fill
            && recall.slot != PROMPTING
            && !table.memory.iter().any(|memory| memory.name == recall.slot)
        {
            let known: Vec<&str> = table
                .memory
                .iter()
                .map(|memory| memory.name.as_str())
                .collect();
            let remedy = format!("slots of this table: {PROMPTING} {}", known.join(" "));
            fault(
                &format!("{at}/recall"),
                format!("no slot is called `{}`", recall.slot),
                &remedy,
            );
        }
        for conversion in &row.convert {
            let gives = lossy || row.only.is_some();
            check_conversion(table, conversion, gives && lossy, row.only, &at, fault);
        }
    }
}

fn check_conversion(
    table: &Table,
    conversion: &Conversion,
    lossy: bool,
    only: Option<Way>,
    at: &str,
    fault: AddFault<'_>,
) {
    match conversion {
        Conversion::As(by) if !by.has_inverse() && !lossy && only.is_none() => {
            let what = format!("`{by}` has no inverse");
            fault(
                &format!("{at}/as"),
                what,
                "add `lossy` to the rule and say what is lost",
            );
        }
        Conversion::As(_) => {}
        Conversion::In(rows) | Conversion::Each(Each::Rows(rows)) => {
            check_rows(table, rows, lossy, &format!("{at}/each"), fault);
        }
        Conversion::Shape(name) | Conversion::Each(Each::Shape(name)) => {
            if !table.shapes.iter().any(|shape| shape.name == *name) {
                let known: Vec<&str> = table
                    .shapes
                    .iter()
                    .map(|shape| shape.name.as_str())
                    .collect();
                let remedy = format!("shapes of this table: {}", known.join(" "));
                fault(
                    &format!("{at}/shape"),
                    format!("no shape is called `{name}`"),
                    &remedy,
                );
            }
        }
        Conversion::Values {
            both,
            read,
            write,
            other,
            park,
        } => {
            for (index, (one, two)) in both.iter().enumerate() {
                let twice = both[..index].iter().any(|(left, right)| {
                    text::same(&left.0, &one.0) || text::same(&right.0, &two.0)
                });
                if twice {
                    let shown = String::from_utf8_lossy(&two.0);
                    let what = format!("the values are not injective: {shown} is met twice");
                    let remedy = "put the pair that is not written back into `read_values`";
                    fault(&format!("{at}/values"), what, remedy);
                }
            }
            let loses = !read.is_empty() && !park || !write.is_empty() || other.is_some() && !park;
            if loses && !lossy {
                let remedy = "add `park`, or `lossy` and say what is lost";
                fault(at, "values of one way only lose something".into(), remedy);
            }
        }
    }
}

/// Whether two rules can both apply to one message in that way. `cases` are the guards of both.
fn clash(one: &Rule, two: &Rule, way: Way, cases: (&Vec<Guard>, &Vec<Guard>)) -> bool {
    let same_kind = matches!(
        (&one.on.what, &two.on.what),
        (Selector::Method(_), Selector::Method(_))
            | (Selector::Answers(_), Selector::Answers(_))
            | (Selector::ErrorsOf(_), Selector::ErrorsOf(_))
    );
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
