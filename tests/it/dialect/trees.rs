//! Pointers on the lazy tree: a written value is there, a removed one is gone, all else stays, and
//! no scalar on the path is overwritten.

use std::borrow::Cow;

use acp_relay::dialect::{JsonPointer, Node};
use jsonptr::PointerBuf;
use proptest::prelude::*;
use serde_json::{Value, json};

fn tree(value: &Value) -> Node<'static> {
    Node::Raw(Cow::Owned(value.to_string().into_bytes()))
}

/// The tree as a value; `None` when it is absent.
fn plain(node: &Node<'_>) -> Option<Value> {
    Some(match node {
        Node::Absent => return None,
        Node::Indexed(_) => panic!("these trees are made of text, not of a scan"),
        Node::Raw(text) => serde_json::from_slice(text).unwrap(),
        Node::Object(members) => {
            let named = members.iter().filter_map(|(name, value)| {
                let quoted = [b"\"", &name[..], b"\""].concat();
                Some((
                    serde_json::from_slice::<String>(&quoted).unwrap(),
                    plain(value)?,
                ))
            });
            Value::Object(named.collect())
        }
        Node::Array(items) => items
            .iter()
            .map(|item| plain(item).unwrap_or_default())
            .collect(),
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        "[a~/\"\u{e9}]{0,3}".prop_map(Value::from),
    ];
    let name = prop::sample::select(vec!["a", "b", "0", "1", "-", "", "~/", "\u{e9}\"\n"]);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..4)
                .prop_map(|all| all.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()),
        ]
    })
}

fn pointer() -> impl Strategy<Value = PointerBuf> {
    let name = prop::sample::select(vec![
        "a",
        "b",
        "0",
        "1",
        "01",
        "+1",
        "2",
        "-",
        "",
        "~/",
        "\u{e9}\"\n",
    ]);
    prop::collection::vec(name, 0..5).prop_map(PointerBuf::from_tokens)
}

/// Whether a scalar other than null is on the path to the pointer's last name.
fn blocked(value: &Value, pointer: &PointerBuf) -> bool {
    let mut here = value;
    for token in pointer.tokens() {
        here = match here {
            Value::Object(members) => match members.get(&*token.decoded()) {
                Some(inner) => inner,
                None => return false,
            },
            Value::Array(items) => {
                let index = token.decoded().parse::<usize>().ok();
                match index
                    .filter(|at| at.to_string() == token.decoded())
                    .and_then(|at| items.get(at))
                {
                    Some(inner) => inner,
                    None => return false,
                }
            }
            Value::Null => return false,
            _ => return true,
        };
    }
    false
}

/// A value without what is at the pointer, to compare the rest.
fn without(mut value: Value, pointer: &PointerBuf) -> Value {
    if let Some(there) = value.pointer_mut(pointer.as_str()) {
        *there = json!("it was here");
    }
    value
}

proptest! {
    #![proptest_config(super::cases(1000))]

    #[test]
    fn a_written_value_is_there_and_all_else_is_unchanged(before in value(), pointer in pointer(), new in value()) {
        let mut node = tree(&before);
        let old = before.pointer(pointer.as_str()).cloned();
        let place = JsonPointer::from(pointer.clone());
        match node.put(place.names(), tree(&new)) {
            Ok(()) => {
                prop_assert!(!blocked(&before, &pointer), "a scalar was overwritten on the way");
                let after = plain(&node).unwrap();
                if pointer.tokens().all(|token| token.decoded() != "-") {
                    prop_assert_eq!(after.pointer(pointer.as_str()), Some(&new));
                    prop_assert_eq!(node.get_mut(place.names()).and_then(|node| plain(node)), Some(new));
                }
                if old.is_some() {
                    prop_assert_eq!(without(after, &pointer), without(before, &pointer));
                }
            }
            Err(_) => {
                prop_assert!(old.is_none(), "{} is there and cannot be assigned", pointer);
                prop_assert_eq!(plain(&node), Some(before));
            }
        }
    }

    #[test]
    fn a_removed_value_was_there_and_is_gone(before in value(), pointer in pointer()) {
        let mut node = tree(&before);
        let there = before.pointer(pointer.as_str()).cloned();
        let place = JsonPointer::from(pointer.clone());
        prop_assert_eq!(node.get_mut(place.names()).and_then(|node| plain(node)), there.clone());
        let gone = node.take(place.names());
        prop_assert_eq!(gone.as_ref().and_then(plain), there.clone());
        match there {
            None => prop_assert_eq!(plain(&node), Some(before)),
            // In an array the next element moves up.
            Some(_) if pointer.tokens().all(|token| token.decoded().parse::<usize>().is_err()) => {
                prop_assert!(node.get_mut(place.names()).is_none());
            }
            Some(_) => {}
        }
    }
}
