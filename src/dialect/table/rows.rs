//! Parses the rows and cases of a rule.

use super::operations::{Action, Converter};
use super::parser::{Located, Parser};
use super::types::{Case, Conversion, Each, Emit, Fill, FixedAnswer, Literal, Recall, Rest, Row};
use super::way::Way;
use crate::dialect::pointer::{JsonPointer, own_pointer};

const WAYS: [(&str, Way); 2] = [("read", Way::Read), ("write", Way::Write)];

impl Parser<'_> {
    /// A case whose keys have been checked.
    pub(super) fn case(&self, at: &Located<'_>) -> Case {
        let mut case = Case::default();
        if let Some(when) = at.get("when") {
            self.object(&when, "/$defs/case/properties/when");
            case.dialect = self.optional_guard(&when, "dialect");
            case.canonical = self.optional_guard(&when, "canonical");
        }
        case.only = self.only(at);
        case.lossy = self.optional_text(at, "lossy");
        case.rows = self.rows(at, "rows");
        case.rest = self.rest(at);
        case.emit = self.list(at, "emit", |at| self.emit(at));
        case.answer = at.get("answer").and_then(|at| self.answer(&at));
        case.fail = at.get("fail").and_then(|at| self.error(&at));
        case.refuse = at.get("refuse").and_then(|at| self.error(&at));
        case.drop = self.optional_text(at, "drop");
        case.actions = self.list(at, "do", |at| self.word(at, &Action::words()));
        case
    }

    /// Cases, each of which is an object.
    pub(super) fn cases(&self, all: &[Located<'_>]) -> Vec<Case> {
        let objects = all.iter().filter(|at| self.object(at, "/$defs/case"));
        objects.map(|at| self.case(at)).collect()
    }

    /// The elements of an optional list.
    pub(super) fn list<T>(
        &self,
        at: &Located<'_>,
        name: &str,
        mut read: impl FnMut(&Located<'_>) -> Option<T>,
    ) -> Vec<T> {
        let all = at.get(name).map(|at| at.each()).unwrap_or_default();
        all.iter().filter_map(&mut read).collect()
    }

    /// The rows under a name.
    pub(super) fn rows(&self, at: &Located<'_>, name: &str) -> Vec<Row> {
        self.list(at, name, |at| self.row(at))
    }

    pub(super) fn only(&self, at: &Located<'_>) -> Option<Way> {
        self.optional_word(at, "only", &WAYS)
    }

    fn row(&self, at: &Located<'_>) -> Option<Row> {
        if !self.object(at, "/$defs/row") {
            return None;
        }
        let dialect = self.optional_pointer(at, "dialect");
        let canonical = self.optional_pointer(at, "canonical");
        let into = match at.get("into") {
            Some(at) => self.word(&at, &[("canonical", Way::Read), ("dialect", Way::Write)])?,
            None if canonical.is_none() => Way::Write,
            None => Way::Read,
        };
        Some(Row {
            only: self.only(at),
            convert: self.conversions(at),
            fill: self.fill(at),
            into,
            copy: self.flag(at, "copy"),
            drop: self.optional_text(at, "drop"),
            parking: parking(dialect.as_ref(), canonical.as_ref()),
            dialect,
            canonical,
        })
    }

    fn conversions(&self, at: &Located<'_>) -> Vec<Conversion> {
        let mut all = Vec::new();
        let by = self.optional_word(at, "as", &Converter::ALL);
        all.extend(by.map(Conversion::As));
        let tables = ["values", "read_values", "write_values", "other"];
        if tables.iter().any(|name| at.get(name).is_some()) {
            all.push(Conversion::Values {
                both: self.pairs(at, "values"),
                read: self.pairs(at, "read_values"),
                write: self.pairs(at, "write_values"),
                other: at.get("other").map(|at| at.literal()),
                park: self.flag(at, "park"),
            });
        }
        if let Some(rows) = at.get("in") {
            let rows = self.nested(&rows, || self.rows(at, "in"));
            all.extend(rows.map(Conversion::In));
        }
        if let Some(at) = at.get("shape") {
            all.extend(self.text(&at).map(Conversion::Shape));
        }
        if let Some(each) = at.get("each") {
            let each = if each.value.is_object() && each.get("shape").is_some() {
                self.object(&each, "/$defs/row/properties/each/anyOf/1");
                Some(Each::Shape(self.required_text(&each, "shape")))
            } else {
                self.nested(&each, || Each::Rows(self.rows(at, "each")))
            };
            all.extend(each.map(Conversion::Each));
        }
        all
    }

    /// A table of values: `{"done": "end_turn"}`, or pairs `[[1, "one"], …]`.
    fn pairs(&self, at: &Located<'_>, name: &str) -> Vec<(Literal, Literal)> {
        let Some(at) = at.get(name) else {
            return Vec::new();
        };
        if at.value.is_object() {
            let key = |name: &str| serde_json::Value::from(name).to_string().into_bytes();
            return at
                .members()
                .into_iter()
                .map(|(name, value)| (Literal(key(name).into()), value.literal()))
                .collect();
        }
        let pairs = at.each();
        pairs
            .iter()
            .filter_map(|pair| match &pair.each()[..] {
                [one, two] if pair.value.is_array() => Some((one.literal(), two.literal())),
                _ => {
                    let remedy = "write [dialect value, canonical value]";
                    self.fault(&pair.pointer, "this is no pair of values", remedy);
                    None
                }
            })
            .collect()
    }

    fn fill(&self, at: &Located<'_>) -> Option<Fill> {
        let given = ["default", "const", "recall", "derive"];
        let count = given.iter().filter(|name| at.get(name).is_some()).count();
        if count > 1 {
            let remedy = "keep one of default, const, recall, derive";
            self.fault(&at.pointer, "a row is filled in one way", remedy);
        }
        if let Some(at) = at.get("default") {
            return Some(Fill::Default(at.literal()));
        }
        if let Some(at) = at.get("const") {
            return Some(Fill::Const(at.literal()));
        }
        if let Some(at) = at.get("derive") {
            self.object(&at, "/$defs/row/properties/derive");
            let by = self.optional_word(&at, "as", &Converter::ALL)?;
            let from = self.optional_pointer(&at, "from")?;
            return Some(Fill::Derive { from, by });
        }
        let at = at.get("recall")?;
        if at.value.is_string() {
            return Some(Fill::Recall(Recall {
                slot: self.text(&at)?,
                by: None,
                or: None,
            }));
        }
        self.object(&at, "/$defs/row/properties/recall/anyOf/1");
        Some(Fill::Recall(Recall {
            slot: self.required_text(&at, "slot"),
            by: self.optional_pointer(&at, "by"),
            or: at.get("or").map(|at| at.literal()),
        }))
    }

    fn rest(&self, at: &Located<'_>) -> Rest {
        let Some(at) = at.get("rest") else {
            return Rest::Keep;
        };
        if at.value.is_string() {
            let words = [("keep", false), ("meta", true)];
            if self.word(&at, &words) != Some(true) {
                return Rest::Keep;
            }
            let place = |text: &str| own_pointer(text);
            return Rest::Move {
                dialect: place(""),
                canonical: place("/_meta/acp-relay"),
            };
        }
        self.object(&at, "/$defs/case/properties/rest/anyOf/1");
        if let Some(why) = self.optional_text(&at, "drop") {
            return Rest::Drop(why);
        }
        match (
            self.optional_pointer(&at, "dialect"),
            self.optional_pointer(&at, "canonical"),
        ) {
            (Some(dialect), Some(canonical)) => Rest::Move { dialect, canonical },
            _ => {
                let remedy = "write \"keep\", \"meta\", {\"drop\": why} or {\"dialect\": …, \"canonical\": …}";
                self.fault(&at.pointer, "`rest` is not complete", remedy);
                Rest::Keep
            }
        }
    }

    fn emit(&self, at: &Located<'_>) -> Option<Emit> {
        if !self.object(at, "/$defs/emit") {
            return None;
        }
        Some(Emit {
            way: at
                .get("way")
                .map_or(Some(Way::Read), |at| self.word(&at, &WAYS))?,
            after: at.get("place").map_or(Some(false), |at| {
                self.word(&at, &[("before", false), ("after", true)])
            })?,
            method: self.required_text(at, "method"),
            each: self.optional_pointer(at, "each"),
            rows: self.rows(at, "rows"),
        })
    }

    fn answer(&self, at: &Located<'_>) -> Option<FixedAnswer> {
        self.object(at, "/$defs/case/properties/answer");
        match (at.get("result"), at.get("error")) {
            (Some(result), None) => Some(FixedAnswer::Result(result.literal())),
            (None, Some(error)) => self.error(&error).map(FixedAnswer::Error),
            _ => {
                let remedy = "write {\"result\": …} or {\"error\": {\"code\": …, \"message\": …}}";
                self.fault(&at.pointer, "an answer is a result or an error", remedy);
                None
            }
        }
    }

    /// A JSON-RPC error.
    fn error(&self, at: &Located<'_>) -> Option<Literal> {
        if !self.object(at, "/$defs/error") {
            return None;
        }
        if at
            .value
            .get("code")
            .and_then(serde_json::Value::as_i64)
            .is_none()
        {
            self.fault(
                &at.pointer,
                "an error has a `code`",
                "add `\"code\": -32603`",
            );
        }
        self.required_text(at, "message");
        Some(at.literal())
    }
}

/// Where the original of a row's value is parked: in the object of the canonical value.
fn parking(
    dialect: Option<&JsonPointer>,
    canonical: Option<&JsonPointer>,
) -> Option<Box<[Box<str>]>> {
    let (_, parent) = canonical?.names().split_last()?;
    let name = dialect?.names().last()?;
    let own = ["_meta".into(), "acp-relay".into(), name.clone()];
    Some(parent.iter().cloned().chain(own).collect())
}
