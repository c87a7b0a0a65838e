//! Applies rows and guards to one value, in either way.
//!
//! All values are taken before any is put, so that rows may swap places. If one of them cannot be
//! put, the caller discards the tree. `step` selects the rules.

use std::collections::BTreeMap;

use jsonptr::PointerBuf;
use smallvec::SmallVec;

use super::guard::first_case;
use super::pointer::{JsonPointer, own_pointer};
use super::table::{
    Case, Converter, Derive, Each, Expect, List, Literal, Pairs, Recall, Rest, Row, Way,
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
    Refused(Vec<u8>),
    /// The table drops it.
    Dropped(String),
}

/// The state of one rewriting.
pub(super) struct Rewriter<'a, 'r> {
    way: Way,
    shapes: &'a BTreeMap<String, List<Case>>,
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

/// Rows that apply in the way of the rewriting.
type Rows<'a> = SmallVec<[&'a Row; 8]>;

/// Values that move to other places.
type Moved<'a> = SmallVec<[(&'a JsonPointer, Node<'a>); 2]>;

impl<'a, 'r> Rewriter<'a, 'r> {
    /// For one value, or more of one message.
    pub(super) fn new(
        way: Way,
        shapes: &'a BTreeMap<String, List<Case>>,
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
                return Err(RewriteError::Refused(error.json()));
            }
            if let Some(why) = &case.drop {
                return Err(RewriteError::Dropped(why.clone()));
            }
        }
        let rows = cases.iter().flat_map(|case| &case.rows);
        let rows = rows.filter(|row| row.applies(self.way)).collect();
        self.apply_rows(scope, &rows, cases)
    }

    /// Applies rows without a guard.
    fn rows(&mut self, scope: &mut Node<'a>, rows: &'a [Row]) -> Result<(), RewriteError> {
        let rows: Rows<'a> = rows.iter().filter(|row| row.applies(self.way)).collect();
        let is_whole = |row: &&Row| {
            let place = row.before(self.way);
            place.is_some_and(|place| place.names().is_empty())
        };
        match scope.kind() {
            None | Some(JsonType::Object | JsonType::Array) => {}
            Some(_) if rows.iter().any(is_whole) => {}
            Some(_) => return Ok(()),
        }
        self.apply_rows(scope, &rows, &[])
    }

    fn apply_rows(
        &mut self,
        scope: &mut Node<'a>,
        rows: &Rows<'a>,
        cases: &[&'a Case],
    ) -> Result<(), RewriteError> {
        let way = self.way;
        self.remove_one_sided(scope, rows, true);
        let moved = self.collect(scope, rows)?;
        for (place, _) in consts(cases, way.reverse()) {
            let rebuilt = consts(cases, way).any(|(other, _)| other == place);
            self.changed |= !rebuilt && scope.take(place.names()).is_some();
        }
        self.remove_one_sided(scope, rows, false);
        for case in cases {
            self.rest(scope, case, cases)?;
        }
        for (place, literal) in consts(cases, way) {
            self.put_constant(scope, place, literal)?;
        }
        // A list grows at its end, so its further elements come last, in their order.
        let mut further = Vec::new();
        for (place, value) in moved {
            match element(place) {
                None | Some(0) => self.put(scope, place.names(), value)?,
                Some(at) => further.push((at, place, value)),
            }
        }
        self.fill(scope, rows)?;
        further.sort_by_key(|(at, ..)| *at);
        for (_, place, value) in further {
            self.put(scope, place.names(), value)?;
        }
        Ok(())
    }

    /// Takes the values of two-sided rows and converts them.
    fn collect(
        &mut self,
        scope: &mut Node<'a>,
        rows: &Rows<'a>,
    ) -> Result<Moved<'a>, RewriteError> {
        let mut moved = Moved::new();
        let mut spent: SmallVec<[&JsonPointer; 4]> = SmallVec::new();
        for row in rows {
            let (Some(before), Some(after)) = (row.before(self.way), row.after(self.way)) else {
                continue;
            };
            if before == after && !row.converts() && row.fill_count() == 0 {
                continue;
            }
            let Some(value) = scope.get_mut(before.names()).map(|node| node.clone()) else {
                continue;
            };
            if !row.fills(self.way) && is_filled_value(scope, row, &value.json()) {
                spent.push(before);
                continue;
            }
            let outer = std::mem::replace(&mut self.changed, false);
            let value = self.convert(scope, row, value);
            let converted = std::mem::replace(&mut self.changed, outer);
            match value {
                Ok(Node::Absent) => spent.push(before),
                Ok(value) => {
                    if before != after || converted {
                        self.changed = true;
                        moved.push((after, value));
                    }
                    if before != after && !row.copy {
                        spent.push(before);
                    }
                }
                Err(RewriteError::Dropped(why)) => {
                    self.dropped.push(why);
                    spent.push(before);
                }
                Err(error) => return Err(error),
            }
        }
        for place in spent {
            self.changed |= scope.take(place.names()).is_some();
        }
        Ok(moved)
    }

    /// Removes values that exist only on the source side; derived ones first, while the values that
    /// they are derived from are present.
    fn remove_one_sided(&mut self, scope: &mut Node<'a>, rows: &Rows<'a>, derived: bool) {
        for row in rows.iter().filter(|row| row.derive.is_some() == derived) {
            let (Some(place), None) = (row.before(self.way), row.after(self.way)) else {
                continue;
            };
            let Some(found) = scope.get(place) else {
                continue;
            };
            let is_removed = match row.fill_count() {
                0 => row.drop.is_some(),
                _ if row.constant.is_some() || row.recall.is_some() => true,
                _ => is_filled_value(scope, row, &found.json()),
            };
            if is_removed && scope.take(place.names()).is_some() {
                self.changed = true;
                self.dropped.extend(row.drop.clone());
            }
        }
    }

    /// Writes values that are missing on the target side; derived ones last.
    fn fill(&mut self, scope: &mut Node<'a>, rows: &Rows<'a>) -> Result<(), RewriteError> {
        for derived in [false, true] {
            for row in rows.iter().filter(|row| row.derive.is_some() == derived) {
                let Some(place) = row.after(self.way).filter(|_| row.fills(self.way)) else {
                    continue;
                };
                if let Some(literal) = &row.constant {
                    self.put_constant(scope, place, literal)?;
                } else if scope.get(place).is_none()
                    && let Some(value) = self.fill_value(scope, row)
                {
                    self.put(scope, place.names(), value)?;
                }
            }
        }
        Ok(())
    }

    /// The value that a row fills in where there is none.
    fn fill_value(&self, scope: &Node<'a>, row: &'a Row) -> Option<Node<'a>> {
        if let Some(literal) = &row.default {
            return Some(Node::raw(&literal.0));
        }
        if let Some(derive) = &row.derive {
            return derived(scope, derive);
        }
        let recall = row.recall.as_ref()?;
        let key = recall.by.as_ref().and_then(|by| scope.text_at(by));
        let fits = recall.by.is_none() || key.is_some();
        let found = fits
            .then(|| (self.recall)(recall, key.as_deref()))
            .flatten();
        found.or_else(|| recall.or.as_ref().map(|literal| Node::raw(&literal.0)))
    }

    fn put_constant(
        &mut self,
        scope: &mut Node<'a>,
        place: &'a JsonPointer,
        literal: &'a Literal,
    ) -> Result<(), RewriteError> {
        let found = scope.get(place);
        match found.is_some_and(|found| text::equals(&literal.0, &found.json())) {
            true => Ok(()),
            false => self.put(scope, place.names(), Node::raw(&literal.0)),
        }
    }

    fn put(
        &mut self,
        scope: &mut Node<'a>,
        names: &[Box<str>],
        value: Node<'a>,
    ) -> Result<(), RewriteError> {
        self.changed = true;
        put(scope, names, value)
    }

    /// Converts the value of a row: its named conversion is nearest to the dialect.
    fn convert(
        &mut self,
        scope: &mut Node<'a>,
        row: &'a Row,
        mut value: Node<'a>,
    ) -> Result<Node<'a>, RewriteError> {
        if self.way == Way::Read {
            value = self.convert_named(row, value);
        }
        if row.maps_values() {
            value = self.map_value(scope, row, value);
        }
        if !row.inside.is_empty() {
            self.rows(&mut value, &row.inside)?;
        }
        if let Some(name) = &row.shape {
            self.shape(&mut value, name)?;
        }
        if let Some(each) = &row.each {
            self.each(&mut value, each)?;
        }
        if self.way == Way::Write {
            value = self.convert_named(row, value);
        }
        Ok(value)
    }

    fn convert_named(&mut self, row: &Row, value: Node<'a>) -> Node<'a> {
        let Some(by) = row.convert else {
            return value;
        };
        let converted = by.convert(self.way, value);
        self.changed |= converted.is_ok();
        converted.unwrap_or_else(|same| same)
    }

    /// Converts every element of an array, or every member of an object.
    fn each(&mut self, value: &mut Node<'a>, each: &'a Each) -> Result<(), RewriteError> {
        let mut outcome = Ok(());
        let mut keeps = |item: &mut Node<'a>| {
            if outcome.is_err() {
                return true;
            }
            let done = match each {
                Each::Rows(rows) => self.rows(item, rows),
                Each::Shape { shape } | Each::Members { members: shape } => self.shape(item, shape),
            };
            if let Err(RewriteError::Dropped(why)) = done {
                self.dropped.push(why);
                self.changed = true;
                return false;
            }
            outcome = done;
            true
        };
        if let Each::Members { .. } = each {
            let members = value.members().into_iter();
            members.for_each(|all| all.retain_mut(|(_, value)| keeps(value)));
        } else {
            let items = value.items().into_iter();
            items.for_each(|all| all.retain_mut(&mut keeps));
        }
        outcome
    }

    /// Applies the first case of a shape whose guards hold.
    fn shape(&mut self, value: &mut Node<'a>, name: &str) -> Result<(), RewriteError> {
        let Some(cases) = self.shapes.get(name) else {
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
    fn map_value(&mut self, scope: &mut Node<'a>, row: &'a Row, value: Node<'a>) -> Node<'a> {
        let parking = row.park.then(|| parking(row)).flatten();
        if let (Way::Write, Some(names)) = (self.way, &parking)
            && let Some(original) = scope.take(names)
        {
            self.changed = true;
            let mapped = mapped(row, Way::Read, &original.json());
            if mapped.is_some_and(|(literal, _)| text::equals(&literal.0, &value.json())) {
                return original;
            }
        }
        let Some((literal, exact)) = mapped(row, self.way, &value.json()) else {
            return value;
        };
        if text::equals(&literal.0, &value.json()) {
            return value;
        }
        self.changed = true;
        if let (Way::Read, false, Some(names)) = (self.way, exact, parking) {
            // If it cannot be parked it is only lost on the way back.
            let _ = scope.put(&names, value);
        }
        Node::raw(&literal.0)
    }

    /// Moves or drops the members that no row and no guard names.
    fn rest(
        &mut self,
        scope: &mut Node<'a>,
        case: &'a Case,
        cases: &[&'a Case],
    ) -> Result<(), RewriteError> {
        let root = own_pointer("");
        let (from, to) = match &case.rest {
            Rest::Keep => return Ok(()),
            Rest::Drop(_) => (&root, None),
            Rest::Move { dialect, canonical } => {
                let (from, to) = self.way.pick((dialect, canonical), (canonical, dialect));
                (from, Some(to))
            }
        };
        let mut named = named(cases, self.way, from.names());
        // The target may be inside the source.
        let inner = to.filter(|to| to.is_within(from));
        named.extend(inner.and_then(|to| to.names().get(from.names().len()).cloned()));
        let Some(members) = scope.get_mut(from.names()).and_then(Node::members) else {
            return Ok(());
        };
        let is_named = |raw: &[u8]| named.iter().any(|name| text::same_name(raw, name));
        let unnamed: Vec<_> = members.extract_if(.., |(raw, _)| !is_named(raw)).collect();
        if members.is_empty() && !from.names().is_empty() {
            scope.take(from.names());
        }
        self.unnamed += unnamed.len();
        self.changed |= !unnamed.is_empty();
        if let (Rest::Drop(why), false) = (&case.rest, unnamed.is_empty()) {
            self.dropped.push(why.clone());
        }
        for (raw, value) in unnamed {
            if let (Some(name), Some(to)) = (text::unescape(&raw), to) {
                let names = [to.names(), &[(&*name).into()]].concat();
                put(scope, &names, value)?;
            }
        }
        Ok(())
    }

    /// Makes a new value from another one by rows.
    pub(super) fn build(
        &mut self,
        source: &Node<'a>,
        rows: &'a [Row],
    ) -> Result<Node<'a>, RewriteError> {
        let mut made = Node::Absent;
        for row in rows {
            let after = row.after(self.way).map_or(&[][..], JsonPointer::names);
            // The row's source column is moved to a separate object so that it cannot collide with
            // the result.
            let mut scope = Node::object(Vec::new());
            if let Some(before) = row.before(self.way) {
                match source.get(before) {
                    Some(value) => put(&mut scope, before.names(), value.to_node())?,
                    None if row.fill_count() == 0 => continue,
                    None => {}
                }
            }
            self.rows(&mut scope, std::slice::from_ref(row))?;
            if let Some(value) = scope.take(after) {
                put(&mut made, after, value)?;
            }
        }
        Ok(made)
    }
}

/// Which element of a list a place is.
fn element(place: &JsonPointer) -> Option<usize> {
    text::array_index(place.names().last()?)
}

fn put<'a>(scope: &mut Node<'a>, names: &[Box<str>], value: Node<'a>) -> Result<(), RewriteError> {
    let put = scope.put(names, value);
    put.map_err(|Blocked| {
        RewriteError::Blocked(PointerBuf::from_tokens(names.iter().map(|name| &**name)).to_string())
    })
}

/// Whether a value equals the default, or the derived value, that a row fills in.
fn is_filled_value(scope: &Node<'_>, row: &Row, value: &[u8]) -> bool {
    if let Some(literal) = &row.default {
        return text::equals(&literal.0, value);
    }
    let derived = row.derive.as_ref().and_then(|by| derived(scope, by));
    derived.is_some_and(|derived| text::same(&derived.json(), value))
}

fn derived(scope: &Node<'_>, Derive { from, by }: &Derive) -> Option<Node<'static>> {
    let other = scope.get(from)?.json().into_owned();
    // A string that needs no conversion is used unchanged.
    let made = match by.convert(Way::Read, Node::owned(other)) {
        Err(same) if *by == Converter::PlainText => same,
        made => made.ok()?,
    };
    Some(made.to_static())
}

/// Where the original of a row's value is parked: in the object of the canonical value.
fn parking(row: &Row) -> Option<Vec<Box<str>>> {
    let (_, parent) = row.canonical.as_ref()?.names().split_last()?;
    let name = row.dialect.as_ref()?.names().last()?;
    let own = ["_meta".into(), "acp-relay".into(), name.clone()];
    Some([parent, &own].concat())
}

/// The value that one is mapped to, and whether the way back restores the original.
fn mapped<'a>(row: &'a Row, way: Way, json: &[u8]) -> Option<(&'a Literal, bool)> {
    let find = |pairs: &'a Pairs| {
        let sides = pairs.0.iter();
        let mut sides = sides.map(|(one, two)| way.pick((one, two), (two, one)));
        sides.find_map(|(from, to)| text::equals(&from.0, json).then_some(to))
    };
    if let Some(to) = find(&row.values) {
        return Some((to, true));
    }
    let other = row.other.as_ref().filter(|_| way == Way::Read);
    let extra = find(way.pick(&row.read_values, &row.write_values));
    extra.or(other).map(|to| (to, false))
}

/// The constants that the cases write on the target side of `way`.
fn consts<'a, 'c>(
    cases: &'c [&'a Case],
    way: Way,
) -> impl Iterator<Item = (&'a JsonPointer, &'a Literal)> + use<'a, 'c> {
    let all = cases.iter().flat_map(move |case| case.after(way));
    all.filter_map(|(place, expect)| match expect {
        Expect::Const(literal) => Some((place, literal)),
        _ => None,
    })
}

/// The members of the object at `from` that guards and rows name, on the source side.
fn named(cases: &[&Case], way: Way, from: &[Box<str>]) -> Vec<Box<str>> {
    let places = cases.iter().flat_map(|case| {
        let rows = case.rows.iter().filter_map(move |row| row.before(way));
        rows.chain(case.before(way).iter().map(|(place, _)| place))
    });
    places
        .filter(|place| place.names().starts_with(from))
        .filter_map(|place| place.names().get(from.len()).cloned())
        .collect()
}
