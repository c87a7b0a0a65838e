//! The rows and guards of a rule in two columns.

use serde_json::Value;

use super::columns::table;

/// Lines of four cells: dialect, arrow, canonical, conversion.
type Lines = Vec<Vec<String>>;

/// A rule, or one of its cases, with all its parts.
pub(super) fn case(case: &Value) -> String {
    let mut lines = Lines::new();
    body(case, 1, None, &mut lines);
    table(&lines)
}

/// The named shapes of the table `from`.
pub(super) fn shapes(from: &str, shapes: &Value) -> String {
    let mut text = String::new();
    for (name, all) in shapes.as_object().into_iter().flatten() {
        let mut lines = Lines::new();
        push_line(&mut lines, 0, &format!("\nshape {name}  ({from})"));
        let several = each(all).count() > 1;
        if several {
            cases(all, 1, None, &mut lines);
        } else {
            each(all).for_each(|case| body(case, 1, None, &mut lines));
        }
        text.push_str(&table(&lines));
    }
    text
}

/// A value as text: strings without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(all) => {
            let all: Vec<String> = all
                .iter()
                .map(|(name, value)| format!("{name} {}", plain(value)))
                .collect();
            all.join(", ")
        }
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    }
}

/// All keys of a rule or a case, in the order of the file, under the words of the table language.
fn body(case: &Value, depth: usize, only: Option<&str>, lines: &mut Lines) {
    let own = case.get("only").or_else(|| case.get("way"));
    let only = own.and_then(Value::as_str).or(only);
    for (key, what) in case.as_object().into_iter().flatten() {
        match key.as_str() {
            "id" | "why" | "on" | "name" | "only" | "examples" | "table" => {}
            "when" => guards(what, depth, only, lines),
            "rows" => each(what).for_each(|row| self::row(row, depth, only, lines)),
            "cases" => cases(what, depth, only, lines),
            "emit" => {
                for message in each(what) {
                    push_line(lines, depth, "a further message:");
                    body(message, depth + 1, only, lines);
                }
            }
            key => push_line(lines, depth, &format!("{key}: {}", plain(what))),
        }
    }
}

/// Numbered cases, each with its reason.
fn cases(all: &Value, depth: usize, only: Option<&str>, lines: &mut Lines) {
    for (at, inner) in each(all).enumerate() {
        let mut title = format!("case {}", at + 1);
        for (key, before) in [("name", " "), ("why", ": ")] {
            if let Some(text) = inner[key].as_str() {
                title += &format!("{before}{text}");
            }
        }
        push_line(lines, depth, &title);
        let before = lines.len();
        body(inner, depth + 1, only, lines);
        if lines.len() == before {
            push_line(lines, depth + 1, "is forwarded unchanged");
        }
    }
}

/// Appends a line that is no row.
fn push_line(lines: &mut Lines, depth: usize, what: &str) {
    lines.push(vec![format!("{}{what}", indent(depth))]);
}

fn guards(when: &Value, depth: usize, only: Option<&str>, lines: &mut Lines) {
    let tests = |column: &str| -> Vec<String> {
        let guard = when[column].as_object().into_iter().flatten();
        let test = |(place, expect): (&String, &Value)| {
            let word = expect.as_object().and_then(|test| test.iter().next());
            let what = match word {
                Some((word, Value::String(text))) => format!("{word} {text}"),
                Some((word, what)) => format!("{word} {what}"),
                None => format!("= {expect}"),
            };
            format!("when {} {what}", place_name(place))
        };
        guard.map(test).collect()
    };
    let (dialect, canonical) = (tests("dialect"), tests("canonical"));
    for at in 0..dialect.len().max(canonical.len()) {
        let cell = |side: &[String]| side.get(at).cloned().unwrap_or_default();
        let arrow = if at == 0 { arrow(only) } else { " " };
        let both = [cell(&dialect), cell(&canonical)];
        lines.push(columns(depth, both, arrow));
    }
}

/// The first three cells of a line.
fn columns(depth: usize, [dialect, canonical]: [String; 2], arrow: &str) -> Vec<String> {
    vec![
        format!("{}{dialect}", indent(depth)),
        arrow.to_owned(),
        format!("{}{canonical}", indent(depth - 1)),
    ]
}

fn row(row: &Value, depth: usize, only: Option<&str>, lines: &mut Lines) {
    let only = row["only"].as_str().or(only);
    let place = |column: &str| row[column].as_str().map(place_name).unwrap_or_default();
    let mut cells = columns(depth, ["dialect", "canonical"].map(place), arrow(only));
    cells.push(value_text(row));
    lines.push(cells);
    for inner in ["in", "each"]
        .iter()
        .flat_map(|key| each(&row[*key]))
        .filter(|row| {
            row.get("shape").is_none()
                || row.get("dialect").is_some()
                || row.get("canonical").is_some()
        })
    {
        self::row(inner, depth + 1, only, lines);
    }
}

/// What happens to a row's value: the keys of the row, in the order of the file.
fn value_text(row: &Value) -> String {
    let shown = |(key, what): (&String, &Value)| match (key.as_str(), what) {
        ("dialect" | "canonical" | "only", _) => None,
        ("values", pairs) => Some(self::pairs(pairs, "⇄")),
        ("read_values", pairs) => Some(self::pairs(pairs, "→")),
        ("write_values", pairs) => Some(self::pairs(pairs, "←")),
        ("in", _) => Some("in:".to_owned()),
        ("each", Value::Object(inner)) if inner.contains_key("shape") => {
            Some(format!("each: shape {}", plain(&inner["shape"])))
        }
        ("each", _) => Some("each:".to_owned()),
        ("default" | "const" | "other", what) => Some(format!("{key} {what}")),
        (_, Value::Bool(true)) => Some(key.clone()),
        (_, what) => Some(format!("{key} {}", plain(what))),
    };
    let all = row.as_object().into_iter().flatten();
    all.filter_map(shown).collect::<Vec<_>>().join("; ")
}

/// A table of values.
fn pairs(pairs: &Value, arrow: &str) -> String {
    let pair = |one: &Value, two: &Value| format!("{} {arrow} {}", plain(one), plain(two));
    let all: Vec<String> = match pairs {
        Value::Object(named) => (named.iter())
            .map(|(one, two)| pair(&one.as_str().into(), two))
            .collect(),
        list => each(list).map(|both| pair(&both[0], &both[1])).collect(),
    };
    all.join(", ")
}

fn arrow(only: Option<&str>) -> &'static str {
    match only {
        None => "⇄",
        Some("read") => "→",
        Some(_) => "←",
    }
}

/// A pointer; the empty one, the whole value, is `(all)`.
fn place_name(place: &str) -> String {
    if place.is_empty() { "(all)" } else { place }.to_owned()
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

/// The elements of a list; a single value counts as a list of one.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    let (many, one) = match value {
        Value::Array(all) => (all.as_slice(), None),
        Value::Null => (&[][..], None),
        one => (&[][..], Some(one)),
    };
    many.iter().chain(one)
}
