//! A dialect in two columns, its own rules first, then those of the tables it extends.
//!
//! The file is shown under its own words, so that a key or an operation of the table language
//! needs no code here.

use serde_json::{Value, json};

use crate::text::table;
use dialect::table::content;
use dialect::{Library, Source};
use jsonrpc::Side;

/// A dialect, or some of its rules.
#[derive(Debug)]
pub struct Columns<'t> {
    layers: Vec<Layer<'t>>,
    /// All rules are shown.
    is_whole: bool,
}

/// Lines of four cells: dialect, arrow, canonical, conversion.
type Lines = Vec<Vec<String>>;

/// A table's file, and its content.
#[derive(Debug)]
struct Layer<'t> {
    source: &'t Source,
    name: &'t str,
    content: Value,
}

impl<'t> Columns<'t> {
    /// The dialect of that name, or of these rules of it; all if none is named.
    ///
    /// # Errors
    /// The dialect, or none of the rules, is known.
    pub fn new(tables: &'t Library, name: &str, only: &[String]) -> Result<Self, String> {
        let stack = tables.stack(name).map_err(|unknown| unknown.to_string())?;
        let sources = (stack.iter()).filter_map(|layer| tables.source(&layer.table.name).ok());
        let mut layers: Vec<Layer<'_>> = sources.map(Layer::read).collect();
        let is_whole = only.is_empty();
        if !is_whole {
            let ids: Vec<String> = layers.iter().flat_map(Layer::rules).map(id).collect();
            if !only.iter().any(|wanted| ids.contains(wanted)) {
                let (wanted, ids) = (only.join("`, `"), ids.join(", "));
                return Err(format!("`{name}` has no rule `{wanted}`; it has {ids}"));
            }
            for rules in layers
                .iter_mut()
                .filter_map(|one| one.content["rules"].as_array_mut())
            {
                rules.retain(|rule| only.contains(&id(rule)));
            }
        }
        Ok(Self { layers, is_whole })
    }

    /// Text of several lines.
    pub fn text(&self, examples: bool) -> String {
        let mut text = String::new();
        for (at, layer) in self.layers.iter().enumerate() {
            if at > 0 && self.is_whole {
                text.push_str("\nbelow it, ");
            }
            if at == 0 || self.is_whole {
                text.push_str(&layer.heading());
            }
            text.extend(
                layer
                    .rules()
                    .map(|rule| rule_text(layer.name, rule, examples)),
            );
            if self.is_whole {
                text.push_str(&layer.shapes());
            }
        }
        text
    }

    /// The table with the rules, shapes and memory of all layers, each with the name of its table.
    pub fn json(&self) -> Value {
        let layers = &self.layers;
        let mut all = layers[0].content.clone();
        for key in ["shapes", "memory"] {
            let named =
                |layer: &Layer<'_>| Some((layer.name.to_owned(), layer.content.get(key)?.clone()));
            all[key] = Value::Object(layers.iter().filter_map(named).collect());
        }
        all["tables"] = layers.iter().map(|layer| layer.name).collect();
        let rules: Vec<&Value> = layers.iter().flat_map(Layer::rules).collect();
        all["rules"] = json!(rules);
        all
    }
}

impl<'t> Layer<'t> {
    fn read(source: &'t Source) -> Self {
        let name = source.table().name.as_str();
        let mut content = content(&source.file, &source.text);
        for rule in content["rules"].as_array_mut().into_iter().flatten() {
            rule["table"] = name.into();
        }
        Self {
            source,
            name,
            content,
        }
    }

    fn rules(&self) -> impl Iterator<Item = &Value> {
        each(&self.content["rules"])
    }

    /// The keys of a table besides its rules.
    fn heading(&self) -> String {
        let speaker = self.source.table().speaker;
        let speaker = speaker.map_or("both sides", Side::name);
        let mut text = format!("{}: {}\n", self.name, self.source.table().title);
        let mut add = |key: &str, what: &str| text += &format!("  {key:<10} {what}\n");
        add("file", &self.source.file);
        add("speaker", speaker);
        for (key, what) in self.content.as_object().into_iter().flatten() {
            match key.as_str() {
                "format" | "dialect" | "title" | "speaker" | "rules" | "shapes" => {}
                "detect" => each(what).for_each(|clue| add(key, &plain(clue))),
                _ => add(key, &plain(what)),
            }
        }
        text
    }

    /// The named shapes.
    fn shapes(&self) -> String {
        let shape = |(name, all): (&String, &Value)| {
            let mut lines = vec![vec![format!("\nshape {name}  ({})", self.name)]];
            match each(all).count() {
                1 => each(all).for_each(|case| body(case, 1, None, &mut lines)),
                _ => cases(all, 1, None, &mut lines),
            }
            table(&lines)
        };
        let shapes = self.content["shapes"].as_object();
        shapes.into_iter().flatten().map(shape).collect()
    }
}

fn id(rule: &Value) -> String {
    plain(&rule["id"])
}

fn rule_text(table_name: &str, rule: &Value, examples: bool) -> String {
    let on = &rule["on"];
    let keys = [
        ("method", ""),
        ("answers", "result of "),
        ("errors_of", "error of "),
    ];
    let message = keys.iter().find_map(|(key, what)| match on.get(key)? {
        Value::String(name) => Some(format!(", {what}{name}")),
        names => {
            let name = |column: &str| names[column].as_str().unwrap_or("nothing");
            Some(format!(
                ", {what}{} ⇄ {}",
                name("dialect"),
                name("canonical")
            ))
        }
    });
    let (from, message) = (plain(&on["from"]), message.unwrap_or_default());
    let (id, why) = (id(rule), rule["why"].as_str().unwrap_or_default());
    let mut lines = Lines::new();
    body(rule, 1, None, &mut lines);
    let mut text = format!("\n{id}  ({table_name}; from {from}{message})\n");
    if !why.is_empty() {
        text += &format!("  {why}\n");
    }
    text += &table(&lines);
    for example in each(&rule["examples"]).filter(|_| examples) {
        for (head, column) in [("example", "dialect"), ("", "canonical")] {
            let message = &example[column];
            let message = message
                .as_str()
                .map_or_else(|| message.to_string(), str::to_owned);
            text += &format!("  {head:<10} {column:<9} {message}\n");
        }
    }
    text
}

/// All keys of a rule or a case, in the order of the file.
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
                    lines.push(line(depth, "a further message:"));
                    body(message, depth + 1, only, lines);
                }
            }
            key => lines.push(line(depth, &format!("{key}: {}", plain(what)))),
        }
    }
}

/// Numbered cases, each with its reason.
fn cases(all: &Value, depth: usize, only: Option<&str>, lines: &mut Lines) {
    for (at, inner) in each(all).enumerate() {
        let word = |key: &str, before: &str| {
            let text = inner[key].as_str();
            text.map_or_else(String::new, |text| format!("{before}{text}"))
        };
        let title = format!("case {}{}{}", at + 1, word("name", " "), word("why", ": "));
        lines.push(line(depth, &title));
        let before = lines.len();
        body(inner, depth + 1, only, lines);
        if lines.len() == before {
            lines.push(line(depth + 1, "is forwarded unchanged"));
        }
    }
}

fn guards(when: &Value, depth: usize, only: Option<&str>, lines: &mut Lines) {
    let [dialect, canonical] = ["dialect", "canonical"].map(|column| {
        let guard = when[column].as_object().into_iter().flatten();
        let test = |(place, expect): (&String, &Value)| {
            let word = expect.as_object().and_then(|test| test.iter().next());
            let what = word.map_or_else(
                || format!("= {expect}"),
                |(word, what)| {
                    format!(
                        "{word} {}",
                        what.as_str()
                            .map_or_else(|| what.to_string(), str::to_owned)
                    )
                },
            );
            format!("when {} {what}", place_name(place))
        };
        guard.map(test).collect::<Vec<_>>()
    });
    for at in 0..dialect.len().max(canonical.len()) {
        let cell = |side: &[String]| side.get(at).cloned().unwrap_or_default();
        let arrow = if at == 0 { arrow(only) } else { " " };
        lines.push(columns(depth, [cell(&dialect), cell(&canonical)], arrow));
    }
}

fn row(row: &Value, depth: usize, only: Option<&str>, lines: &mut Lines) {
    let only = row["only"].as_str().or(only);
    let place = |column: &str| row[column].as_str().map(place_name).unwrap_or_default();
    let mut cells = columns(depth, ["dialect", "canonical"].map(place), arrow(only));
    // What happens to the value: the keys of the row.
    let shown = |(key, what): (&String, &Value)| match (key.as_str(), what) {
        ("dialect" | "canonical" | "only", _) => None,
        ("values", pairs) => Some(self::pairs(pairs, "⇄")),
        ("read_values", pairs) => Some(self::pairs(pairs, "→")),
        ("write_values", pairs) => Some(self::pairs(pairs, "←")),
        ("in" | "each", what) if inner_rows(what).next().is_some() => Some(format!("{key}:")),
        ("default" | "const" | "other", what) => Some(format!("{key} {what}")),
        (_, Value::Bool(true)) => Some(key.clone()),
        (_, what) => Some(format!("{key} {}", plain(what))),
    };
    let all = row.as_object().into_iter().flatten();
    cells.push(all.filter_map(shown).collect::<Vec<_>>().join("; "));
    lines.push(cells);
    for inner in ["in", "each"].iter().flat_map(|key| inner_rows(&row[*key])) {
        self::row(inner, depth + 1, only, lines);
    }
}

/// The rows of `in` or `each`, which may name a shape instead.
fn inner_rows(value: &Value) -> impl Iterator<Item = &Value> {
    let is_row = |row: &&Value| row.get("dialect").is_some() || row.get("canonical").is_some();
    each(value).filter(is_row)
}

/// The first three cells of a line.
fn columns(depth: usize, [dialect, canonical]: [String; 2], arrow: &str) -> Vec<String> {
    let (left, right) = ("  ".repeat(depth), "  ".repeat(depth - 1));
    vec![
        format!("{left}{dialect}"),
        arrow.to_owned(),
        format!("{right}{canonical}"),
    ]
}

/// A line that is no row.
fn line(depth: usize, what: &str) -> Vec<String> {
    vec![format!("{}{what}", "  ".repeat(depth))]
}

/// A table of values.
fn pairs(pairs: &Value, arrow: &str) -> String {
    let pair = |one: &str, two: &Value| format!("{one} {arrow} {}", plain(two));
    let all: Vec<String> = match pairs {
        Value::Object(named) => named.iter().map(|(one, two)| pair(one, two)).collect(),
        list => each(list)
            .map(|both| pair(&plain(&both[0]), &both[1]))
            .collect(),
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

/// A value as text: strings without quotes.
fn plain(value: &Value) -> String {
    let all: Vec<String> = match value {
        Value::String(text) => return text.clone(),
        Value::Object(all) => {
            let member = |(name, value): (&String, &Value)| format!("{name} {}", plain(value));
            all.iter().map(member).collect()
        }
        Value::Array(all) => all.iter().map(plain).collect(),
        value => return value.to_string(),
    };
    all.join(", ")
}

/// The elements of a list; a single value counts as a list of one.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    let all = match value {
        Value::Array(all) => all.as_slice(),
        Value::Null => &[],
        one => std::slice::from_ref(one),
    };
    all.iter()
}
