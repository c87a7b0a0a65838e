//! Applies rows and guards to one value, in either way.
//!
//! All values are taken before any is put, so that rows may swap places. If one of them cannot be
//! put, the caller discards the tree. `find_rule` selects the rules.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::guard::first_case;
use super::pointer::JsonPointer;
use super::table::{
    Case, Conversion, Converter, Each, Expect, Fill, Literal, Recall, Row, Shape, Values, Way,
};
use super::text::{self, JsonType};
use super::tree::{Blocked, Node};

/// Why a value cannot be translated.
#[derive(Clone, Debug)]
pub(super) enum RewriteError {
    /// A scalar blocks the path of a pointer.
    Blocked(String),
    /// The list to split is too long.
    TooLong,
    /// The table refuses it with this error.
    Refused(Literal),
    /// The table drops it.
    Dropped(String),
}

/// The state of one rewriting.
pub(super) struct Rewriter<'a, 'r> {
    pub(super) way: Way,
    shapes: &'a BTreeMap<String, Shape>,
    /// Reads a slot; the second argument is the key.
    recall: &'r dyn Fn(&Recall, Option<&str>) -> Option<Node<'static>>,
    /// Whether anything was changed.
    pub(super) changed: bool,
    /// The reasons for what was dropped, for the notes.
    pub(super) dropped: Vec<String>,
    /// Shapes of which no case applied.
    pub(super) unmatched: Vec<String>,
    /// The number of members that a `rest` has moved or dropped because no row names them.
    pub(super) unnamed: usize,
}

/// Values that move to other places.
type Moved<'a> = SmallVec<[(&'a JsonPointer, Node<'a>); 2]>;

impl<'a, 'r> Rewriter<'a, 'r> {
    /// For one value, or more of one message.
    pub(super) fn new(
        way: Way,
        shapes: &'a BTreeMap<String, Shape>,
        recall: &'r dyn Fn(&Recall, Option<&str>) -> Option<Node<'static>>,
    ) -> Self {
        Self {
            way,
            shapes,
            recall,
            changed: false,
            dropped: Vec::new(),
            unmatched: Vec::new(),
            unnamed: 0,
        }
    }

    /// Applies cases together; their guards hold.
    pub(super) fn apply(
        &mut self,
        scope: &mut Node<'a>,
        cases: &[&'a Case],
    ) -> Result<(), RewriteError> {
        for case in cases {
            if let Some(error) = &case.refuse {
                return Err(RewriteError::Refused(error.clone()));
            }
            if let Some(why) = &case.drop {
                return Err(RewriteError::Dropped(why.clone()));
            }
        }
        let way = self.way;
        let rows = || {
            cases
                .iter()
                .flat_map(|case| &case.rows)
                .filter(|row| row.applies(way))
        };
        self.remove_one_sided(scope, rows(), true);
        let moved = self.collect(scope, rows())?;
        for (place, _) in consts(cases, way.reverse()) {
            let rebuilt = consts(cases, way).any(|(other, _)| other == place);
            self.changed |= !rebuilt && scope.take(place.names()).is_some();
        }
        self.remove_one_sided(scope, rows(), false);
        for case in cases {
            self.rest(scope, case, cases)?;
        }
        for (place, literal) in consts(cases, way) {
            let there = scope.get(place);
            if !there.is_some_and(|look| text::equals(&literal.0, &look.json())) {
                self.put(scope, place, Node::raw(&literal.0))?;
            }
        }
        for (place, value) in moved {
            self.put(scope, place, value)?;
        }
        self.fill(scope, &rows())
    }

    /// Applies rows without a guard.
    pub(super) fn rows(
        &mut self,
        scope: &mut Node<'a>,
        rows: &'a [Row],
    ) -> Result<(), RewriteError> {
        let whole =
            |place: Option<&JsonPointer>| place.is_some_and(|place| place.names().is_empty());
        let fits = match scope.kind() {
            None | Some(JsonType::Object | JsonType::Array) => true,
            Some(_) => rows
                .iter()
                .any(|row| row.applies(self.way) && whole(row.before(self.way))),
        };
        if !fits {
            return Ok(());
        }
        let way = self.way;
        let active = || rows.iter().filter(|row| row.applies(way));
        self.remove_one_sided(scope, active(), true);
        let moved = self.collect(scope, active())?;
        self.remove_one_sided(scope, active(), false);
        for (place, value) in moved {
            self.put(scope, place, value)?;
        }
        self.fill(scope, &active())
    }

    /// Takes the values of two-sided rows and converts them.
    fn collect(
        &mut self,
        scope: &mut Node<'a>,
        rows: impl Iterator<Item = &'a Row> + Clone,
    ) -> Result<Moved<'a>, RewriteError> {
        let mut moved = Moved::new();
        let mut spent: SmallVec<[&JsonPointer; 4]> = SmallVec::new();
        for row in rows {
            let (Some(before), Some(after)) = (row.before(self.way), row.after(self.way)) else {
                continue;
            };
            if before == after && row.convert.is_empty() && row.fill.is_none() {
                continue;
            }
            let Some(value) = scope.get_mut(before.names()).map(|node| node.clone()) else {
                continue;
            };
            if self.is_default(scope, row, &value) {
                spent.push(before);
                continue;
            }
            let outer = std::mem::replace(&mut self.changed, false);
            let value = self.convert_all(scope, row, value);
            let converted = std::mem::replace(&mut self.changed, outer);
            let value = match value {
                Ok(value) => value,
                Err(RewriteError::Dropped(why)) => {
                    self.dropped.push(why);
                    spent.push(before);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if matches!(value, Node::Absent) {
                spent.push(before);
                continue;
            }
            if before != after || converted {
                self.changed = true;
                moved.push((after, value));
            }
            if before != after && !row.copy {
                spent.push(before);
            }
        }
        for place in spent {
            self.changed |= scope.take(place.names()).is_some();
        }
        Ok(moved)
    }

    /// Whether a two-sided value equals the value that is filled in for it on its own side.
    fn is_default(&self, scope: &Node<'_>, row: &Row, value: &Node<'_>) -> bool {
        if row.into == self.way {
            return false;
        }
        match &row.fill {
            Some(Fill::Default(literal)) => text::equals(&literal.0, &value.json()),
            Some(Fill::Derive { from, by }) => derived(scope, from, *by)
                .is_some_and(|derived| text::same(&derived.json(), &value.json())),
            _ => false,
        }
    }

    /// Removes values that exist only on the source side; derived ones first, while the values that
    /// they are derived from are present.
    fn remove_one_sided(
        &mut self,
        scope: &mut Node<'a>,
        rows: impl Iterator<Item = &'a Row>,
        derives: bool,
    ) {
        let rows = rows.filter(|row| matches!(row.fill, Some(Fill::Derive { .. })) == derives);
        for row in rows {
            let (Some(place), None) = (row.before(self.way), row.after(self.way)) else {
                continue;
            };
            let Some(look) = scope.get(place) else {
                continue;
            };
            let is_removed = match &row.fill {
                Some(Fill::Default(literal)) => text::equals(&literal.0, &look.json()),
                Some(Fill::Derive { from, by }) => derived(scope, from, *by)
                    .is_some_and(|derived| text::same(&derived.json(), &look.json())),
                Some(Fill::Const(_) | Fill::Recall(_)) => true,
                None => row.drop.is_some(),
            };
            if is_removed && scope.take(place.names()).is_some() {
                self.changed = true;
                self.dropped.extend(row.drop.clone());
            }
        }
    }

    /// Writes values that are missing on the target side.
    fn fill(
        &mut self,
        scope: &mut Node<'a>,
        rows: &(impl Iterator<Item = &'a Row> + Clone),
    ) -> Result<(), RewriteError> {
        let derives = |row: &&Row| matches!(row.fill, Some(Fill::Derive { .. }));
        let plain = rows.clone().filter(|row| !derives(row));
        for row in plain.chain(rows.clone().filter(derives)) {
            let place = row.after(self.way).filter(|_| row.into == self.way);
            let (Some(fill), Some(place)) = (&row.fill, place) else {
                continue;
            };
            let there = scope.get(place);
            let value = match fill {
                Fill::Const(literal) => {
                    if there.is_some_and(|look| text::equals(&literal.0, &look.json())) {
                        continue;
                    }
                    Some(Node::raw(&literal.0))
                }
                _ if there.is_some() => continue,
                Fill::Default(literal) => Some(Node::raw(&literal.0)),
                Fill::Derive { from, by } => derived(scope, from, *by),
                Fill::Recall(recall) => {
                    let key = recall.by.as_ref().and_then(|by| scope.text_at(by));
                    let fits = recall.by.is_none() || key.is_some();
                    let found = fits
                        .then(|| (self.recall)(recall, key.as_deref()))
                        .flatten();
                    found.or_else(|| recall.or.as_ref().map(|literal| Node::raw(&literal.0)))
                }
            };
            if let Some(value) = value {
                self.put(scope, place, value)?;
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        scope: &mut Node<'a>,
        place: &'a JsonPointer,
        value: Node<'a>,
    ) -> Result<(), RewriteError> {
        self.changed = true;
        scope
            .put(place.names(), value)
            .map_err(|Blocked| RewriteError::Blocked(place.to_string()))
    }

    fn convert_all(
        &mut self,
        scope: &mut Node<'a>,
        row: &'a Row,
        mut value: Node<'a>,
    ) -> Result<Node<'a>, RewriteError> {
        let forward = &mut row.convert.iter();
        let back = &mut row.convert.iter().rev();
        let conversions: &mut dyn Iterator<Item = &'a Conversion> = self.way.pick(forward, back);
        for conversion in conversions {
            value = self.convert(scope, row, conversion, value)?;
        }
        Ok(value)
    }

    fn convert(
        &mut self,
        scope: &mut Node<'a>,
        row: &'a Row,
        conversion: &'a Conversion,
        mut value: Node<'a>,
    ) -> Result<Node<'a>, RewriteError> {
        match conversion {
            Conversion::As(by) => match by.convert(self.way, value) {
                Ok(made) => {
                    self.changed = true;
                    Ok(made)
                }
                Err(same) => Ok(same),
            },
            Conversion::In(rows) => self.rows(&mut value, rows).map(|()| value),
            Conversion::Shape(name) => self.shape(&mut value, name).map(|()| value),
            Conversion::Each(each) => {
                let Some(items) = value.items() else {
                    return Ok(value);
                };
                let mut error = None;
                items.retain_mut(|item| {
                    if error.is_some() {
                        return true;
                    }
                    let done = match each {
                        Each::Rows(rows) => self.rows(item, rows),
                        Each::Shape { shape } => self.shape(item, shape),
                    };
                    match done {
                        Ok(()) => true,
                        Err(RewriteError::Dropped(why)) => {
                            self.dropped.push(why);
                            self.changed = true;
                            false
                        }
                        Err(other) => {
                            error = Some(other);
                            true
                        }
                    }
                });
                error.map_or(Ok(value), Err)
            }
            Conversion::Values(values) => Ok(self.map_value(scope, row, values, value)),
        }
    }

    /// Applies the first case of a shape whose guards hold.
    fn shape(&mut self, value: &mut Node<'a>, name: &str) -> Result<(), RewriteError> {
        let Some(Shape(cases)) = self.shapes.get(name) else {
            return Ok(());
        };
        match first_case(cases, self.way, value) {
            Some(case) => self.apply(value, &[case]),
            None => {
                self.unmatched.push(name.to_owned());
                Ok(())
            }
        }
    }

    /// Maps one value; one that would not come back is parked beside it.
    fn map_value(
        &mut self,
        scope: &mut Node<'a>,
        row: &'a Row,
        values: &'a Values,
        value: Node<'a>,
    ) -> Node<'a> {
        let parked = row.parking.as_deref().filter(|_| values.park);
        if let (Way::Write, Some(place)) = (self.way, parked)
            && let Some(original) = scope.take(place)
        {
            self.changed = true;
            let mapped = mapped(values, Way::Read, &original.json());
            if mapped.is_some_and(|(literal, _)| text::equals(&literal.0, &value.json())) {
                return original;
            }
        }
        let Some((literal, exact)) = mapped(values, self.way, &value.json()) else {
            return value;
        };
        if text::equals(&literal.0, &value.json()) {
            return value;
        }
        self.changed = true;
        if let (Way::Read, false, Some(place)) = (self.way, exact, parked) {
            // If it cannot be parked it is only lost on the way back.
            let _ = scope.put(place, value);
        }
        Node::raw(&literal.0)
    }

    /// Makes a new value from another one by rows.
    pub(super) fn build(
        &mut self,
        source: &Node<'a>,
        rows: &'a [Row],
    ) -> Result<Node<'a>, RewriteError> {
        let mut made = Node::Absent;
        for row in rows {
            self.build_row(source, row, &mut made)?;
        }
        Ok(made)
    }

    fn build_row(
        &mut self,
        source: &Node<'a>,
        row: &'a Row,
        made: &mut Node<'a>,
    ) -> Result<(), RewriteError> {
        let whole = JsonPointer::parse("").expect("the empty pointer parses");
        let after = row
            .after(self.way)
            .cloned()
            .unwrap_or_else(|| whole.clone());
        // The row's source column is moved to a separate object so that it cannot collide with the
        // result.
        let mut scope = Node::object(Vec::new());
        if let Some(before) = row.before(self.way) {
            let mut source = source.clone();
            if let Some(value) = source.get_mut(before.names()) {
                let value = value.clone();
                let blocked = |Blocked| RewriteError::Blocked(before.to_string());
                if before.names().is_empty() {
                    scope = value;
                } else {
                    scope.put(before.names(), value).map_err(blocked)?;
                }
            } else if row.fill.is_none() {
                return Ok(());
            }
        }
        self.rows(&mut scope, std::slice::from_ref(row))?;
        let Some(value) = scope.take(after.names()) else {
            return Ok(());
        };
        made.put(after.names(), value)
            .map_err(|Blocked| RewriteError::Blocked(after.to_string()))
    }
}

/// The value that one is mapped to, and whether the way back restores the original.
fn mapped<'a>(values: &'a Values, way: Way, json: &[u8]) -> Option<(&'a Literal, bool)> {
    let find = |pairs: &'a [(Literal, Literal)]| {
        let mut sides = pairs
            .iter()
            .map(|(one, two)| way.pick((one, two), (two, one)));
        sides.find_map(|(from, to)| text::equals(&from.0, json).then_some(to))
    };
    if let Some(to) = find(&values.both) {
        return Some((to, true));
    }
    let other = values.other.as_ref().filter(|_| way == Way::Read);
    let extra = find(way.pick(&values.read, &values.write));
    extra.or(other).map(|to| (to, false))
}

fn derived(scope: &Node<'_>, from: &JsonPointer, by: Converter) -> Option<Node<'static>> {
    let other = scope.get(from)?.json().into_owned();
    // A string that needs no conversion is used unchanged.
    let made = match by.convert(Way::Read, Node::owned(other)) {
        Err(same) if by == Converter::PlainText => same,
        made => made.ok()?,
    };
    Some(made.to_static())
}

/// The constants that the cases write on the target side of `way`.
fn consts<'a, 'c>(
    cases: &'c [&'a Case],
    way: Way,
) -> impl Iterator<Item = (&'a JsonPointer, &'a Literal)> + use<'a, 'c> {
    cases.iter().flat_map(move |case| {
        case.after(way)
            .iter()
            .filter_map(|(place, expect)| match expect {
                Expect::Const(literal) => Some((place, literal)),
                _ => None,
            })
    })
}
