//! Which links are opened and resumed, and by whom.

use std::sync::Arc;

use acp_relay::auth::{AuthMethod, Digest, Principal};
use acp_relay::link::{Hello, LinkTable, NewKeys, Refusal, RefusalCode, ResumeKey, Welcome};

/// The holder of a token.
fn user(name: &str) -> Arc<Principal> {
    Arc::new(Principal {
        auth_method: AuthMethod::Token,
        ..Principal::user(name.into())
    })
}

fn keys(number: u32) -> NewKeys {
    NewKeys {
        link: format!("link {number}"),
        epoch: format!("epoch {number}"),
        key: ResumeKey(format!("key {number}")),
    }
}

fn hello(generation: u64) -> Hello {
    Hello {
        v: vec![1],
        generation,
        rx: 1,
        ..Hello::default()
    }
}

/// What a client says that was welcomed so.
fn again(welcome: &Welcome, generation: u64) -> Hello {
    Hello {
        link: Some(welcome.link.clone()),
        epoch: Some(welcome.epoch.clone()),
        key: Some(welcome.key.clone()),
        ..hello(generation)
    }
}

/// Opens or resumes, with new keys of this number.
fn open(
    table: &mut LinkTable<u32>,
    hello: &Hello,
    who: &str,
    number: u32,
) -> Result<(Welcome, u32), Refusal> {
    let opened = table.open(hello, &user(who), keys(number), |_| number);
    opened.map(|(welcome, value)| (welcome, *value))
}

fn code(result: Result<(Welcome, u32), Refusal>) -> RefusalCode {
    result.unwrap_err().code
}

#[test]
fn a_link_is_resumed_by_its_principal_with_the_key_of_the_last_welcome() {
    let mut table = LinkTable::default();
    let (first, value) = open(&mut table, &hello(1), "ann", 1).unwrap();
    assert!(!first.resumed);
    let (second, same) = open(&mut table, &again(&first, 2), "ann", 2).unwrap();
    assert!(second.resumed);
    assert_eq!((value, same), (1, 1));
    assert_eq!(
        (second.link, second.epoch),
        (first.link.clone(), first.epoch.clone())
    );
    assert_eq!(second.key.0, "key 2");
    assert_eq!(table.remove(&first.link), Some(1));
    assert_eq!(table.remove(&first.link), None);
}

#[test]
fn a_key_is_valid_again_only_until_its_successor_was_used() {
    let mut table = LinkTable::default();
    let (first, _) = open(&mut table, &hello(1), "ann", 1).unwrap();
    // This welcome is lost on its way, so the client tries with the key that it has.
    open(&mut table, &again(&first, 2), "ann", 2).unwrap();
    let (third, _) = open(&mut table, &again(&first, 3), "ann", 3).unwrap();
    let (_, _) = open(&mut table, &again(&third, 4), "ann", 4).unwrap();
    let old = open(&mut table, &again(&first, 5), "ann", 5);
    assert_eq!(code(old), RefusalCode::UnknownLink);
}

#[test]
fn a_stolen_key_a_wrong_key_and_an_unknown_link_are_refused_alike() {
    let mut table = LinkTable::default();
    let (first, _) = open(&mut table, &hello(1), "ann", 1).unwrap();
    let stolen = open(&mut table, &again(&first, 2), "bob", 2).unwrap_err();
    let mut wrong = again(&first, 2);
    wrong.key = Some(ResumeKey("key 0".to_owned()));
    let wrong_key = open(&mut table, &wrong, "ann", 2).unwrap_err();
    wrong.key = None;
    let no_key = open(&mut table, &wrong, "ann", 2).unwrap_err();
    wrong.link = Some("link 9".to_owned());
    let unknown = open(&mut table, &wrong, "ann", 2).unwrap_err();
    assert_eq!([&stolen, &wrong_key, &no_key], [&unknown; 3]);
    // None of them has changed the link.
    open(&mut table, &again(&first, 2), "ann", 2).unwrap();
}

#[test]
fn another_token_of_the_same_name_resumes_no_link_of_one_that_was_revoked() {
    let with = |token: &[u8]| {
        Arc::new(Principal {
            key: Some(Digest::of(token)),
            ..Principal::clone(&user("ann"))
        })
    };
    let mut table = LinkTable::default();
    let open = |table: &mut LinkTable<u32>, hello: &Hello, who, number| {
        let opened = table.open(hello, &who, keys(number), |_| number);
        opened.map(|(welcome, value)| (welcome, *value))
    };
    let (first, _) = open(&mut table, &hello(1), with(b"old"), 1).unwrap();
    let refused = open(&mut table, &again(&first, 2), with(b"new"), 2);
    assert_eq!(code(refused), RefusalCode::UnknownLink);
    open(&mut table, &again(&first, 2), with(b"old"), 2).unwrap();
}

#[test]
fn other_epochs_old_generations_and_versions_are_refused() {
    let mut table = LinkTable::default();
    let (first, _) = open(&mut table, &hello(5), "ann", 1).unwrap();
    let mut changed = again(&first, 6);
    changed.epoch = Some("epoch 0".to_owned());
    assert_eq!(
        code(open(&mut table, &changed, "ann", 2)),
        RefusalCode::EpochChanged
    );
    assert_eq!(
        code(open(&mut table, &again(&first, 5), "ann", 2)),
        RefusalCode::Busy
    );
    for generation in [0, u64::MAX] {
        let refused = open(&mut table, &hello(generation), "ann", 2);
        assert_eq!(code(refused), RefusalCode::Gap);
    }
    let mut later = hello(1);
    later.v = vec![2, 3];
    assert_eq!(
        code(open(&mut table, &later, "ann", 2)),
        RefusalCode::Version
    );
    later.v.push(1);
    assert!(open(&mut table, &later, "ann", 2).is_ok());
}

#[test]
fn links_are_kept_for_authenticated_clients_only() {
    let mut table = LinkTable::default();
    let anonymous = Arc::new(Principal::anonymous());
    let refused = table.open(&hello(1), &anonymous, keys(1), |_| 0);
    assert_eq!(refused.unwrap_err().code, RefusalCode::Auth);
    assert_eq!(table.remove("link 1"), None);
    // What a link is kept for can be shared with others of its principal.
    for (who, number, has_other) in [("ann", 1, false), ("ann", 2, true), ("bob", 3, false)] {
        let opened = table.open(&hello(1), &user(who), keys(number), |other| {
            assert_eq!(other.is_some(), has_other);
            number
        });
        opened.unwrap();
    }
    for number in 1..4 {
        assert_eq!(table.remove(&format!("link {number}")), Some(number));
    }
}
