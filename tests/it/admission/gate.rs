//! Which clients the gate admits, and how it counts failures.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_relay::auth::{
    Agents, AuthMethod, AuthRequirement, Certificate, Credentials, Denial, FailedAttempts, Gate,
    GateRules, Key, Keyring, Keys, Now, Principal, Reachability, Token,
};
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);
const ME: u32 = 1000;
/// In the past by the real clock.
const EXPIRY: u64 = 1_000_000_000;

fn at(unix: u64) -> Now {
    Now {
        instant: Instant::now(),
        unix,
    }
}

pub(super) fn token(number: u8) -> Token {
    Token::new([number; 6], [number; 32])
}

pub(super) fn key(number: u8, name: &str, expires: Option<u64>) -> Key {
    Key {
        expires,
        ..Key::of(&token(number), name)
    }
}

pub(super) fn gate(loopback: AuthRequirement, user: u32, failures: usize) -> Gate {
    let gate = Gate::new(GateRules {
        loopback,
        network: AuthRequirement::Credential,
        user: (user, Arc::from("me")),
        failures,
    });
    let mut ring = Keyring::default();
    ring.add(key(1, "alice", None)).unwrap();
    ring.add(key(2, "bob", Some(EXPIRY))).unwrap();
    gate.set_keys(Keys::new(Some(&token(9)), ring, None));
    gate
}

const NOTHING: Credentials<'_> = Credentials {
    reachability: Reachability::Loopback,
    address: Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)),
    user: None,
    certificate: None,
    token: None,
};

const MINE: Credentials<'_> = Credentials {
    user: Some(ME),
    ..NOTHING
};

fn with_token(text: &str) -> Credentials<'_> {
    Credentials {
        token: Some(text.as_bytes()),
        ..NOTHING
    }
}

fn with_certificate(certificate: &Certificate) -> Credentials<'_> {
    Credentials {
        certificate: Some(certificate),
        ..NOTHING
    }
}

#[test]
fn each_credential_has_its_result_at_each_kind_of_listener() {
    let certificate = Certificate {
        name: Arc::from("host.example"),
        expires: EXPIRY,
    };
    let token = |number| token(number).reveal().to_owned();
    let (alice, bob, own, unknown) = (token(1), token(2), token(9), token(7));
    let wrong = alice.replace("AQEB", "AgIC");
    let certified = with_certificate(&certificate);
    let stranger = Credentials {
        user: Some(ME + 1),
        ..NOTHING
    };
    let unknown_of_mine = Credentials {
        token: Some(b"x"),
        ..MINE
    };
    let all = [
        (NOTHING, Err(Denial::Missing)),
        (MINE, Ok((AuthMethod::User, "me"))),
        (stranger, Err(Denial::Missing)),
        (with_token(&alice), Ok((AuthMethod::Token, "alice"))),
        (with_token(&bob), Ok((AuthMethod::Token, "bob"))),
        (with_token(&own), Ok((AuthMethod::User, "me"))),
        (with_token(&unknown), Err(Denial::Wrong)),
        (with_token(&wrong), Err(Denial::Wrong)),
        (with_token(""), Err(Denial::Wrong)),
        // Credentials are checked even where none are required.
        (unknown_of_mine, Err(Denial::Wrong)),
        (certified, Ok((AuthMethod::Certificate, "host.example"))),
    ];
    let ask = |gate: &Gate, claim| {
        let result = gate.authenticate(&claim, at(EXPIRY - 1));
        result.map(|principal| (principal.auth_method, principal.name.to_string()))
    };
    let by_user = gate(AuthRequirement::User, ME, 1000);
    for (claim, expected) in all {
        let expected = expected.map(|(means, name)| (means, name.to_owned()));
        assert_eq!(ask(&by_user, claim), expected, "{claim:?}");
        // Where a credential is required, the user id does not suffice.
        let mut strict = expected.clone();
        if claim.token.is_none() && claim.certificate.is_none() {
            strict = Err(Denial::Missing);
        }
        let network = Credentials {
            reachability: Reachability::Network,
            ..claim
        };
        assert_eq!(ask(&by_user, network), strict, "{network:?}");
        let by_token = gate(AuthRequirement::Credential, ME, 1000);
        assert_eq!(ask(&by_token, claim), strict, "{claim:?}");
        // Where no credential is required, none is wrong.
        let open = gate(AuthRequirement::Nothing, ME, 1000);
        let principal = ask(&open, claim).unwrap();
        match expected {
            Ok((means, name)) if means != AuthMethod::User || claim.token.is_some() => {
                assert_eq!(principal, (means, name));
            }
            _ => assert_eq!(principal, (AuthMethod::Anonymous, "anonymous".to_owned())),
        }
    }
    // A Unix socket is the user's own, whatever loopback requires.
    let socket = |gate: &Gate, user| {
        let claim = Credentials {
            reachability: Reachability::Socket,
            address: None,
            user: Some(user),
            ..NOTHING
        };
        gate.authenticate(&claim, at(0))
            .map(|principal| principal.auth_method)
    };
    let strict = gate(AuthRequirement::Credential, ME, 1000);
    assert_eq!(socket(&strict, ME), Ok(AuthMethod::User));
    assert_eq!(socket(&strict, 0), Err(Denial::Missing));
}

#[test]
fn expired_and_removed_credentials_end_connections() {
    let gate = gate(AuthRequirement::Credential, ME, 5);
    let enter = |number, unix| {
        let token = token(number);
        gate.authenticate(&with_token(token.reveal()), at(unix))
    };
    let (alice, bob) = (enter(1, 0).unwrap(), enter(2, EXPIRY - 1).unwrap());
    assert!(gate.is_still_valid(&bob, at(EXPIRY - 1)));
    assert!(!gate.is_still_valid(&bob, at(EXPIRY)));
    assert_eq!(enter(2, EXPIRY), Err(Denial::Wrong));
    assert!(gate.is_still_valid(&alice, at(EXPIRY)));
    let own = enter(9, 0).unwrap();
    // Another token of the same name is another token.
    let mut ring = Keyring::default();
    ring.add(key(3, "alice", None)).unwrap();
    gate.set_keys(Keys::new(Some(&token(9)), ring, None));
    assert!(!gate.is_still_valid(&alice, at(0)));
    assert_eq!(enter(1, 0), Err(Denial::Wrong));
    assert!(gate.is_still_valid(&enter(3, 0).unwrap(), at(0)));
    assert!(gate.is_still_valid(&own, at(0)));
    // For a client that another relay has authenticated, that relay says it, and not these keys.
    for method in [AuthMethod::Token, AuthMethod::Certificate] {
        let elsewhere = Arc::<CancellationToken>::default();
        let dave = Principal {
            auth_method: method,
            withdrawn: Some(Arc::clone(&elsewhere)),
            ..Principal::clone(&alice)
        };
        gate.set_keys(Keys::new(None, Keyring::default(), Some(Arc::default())));
        assert!(gate.is_still_valid(&dave, at(0)));
        elsewhere.cancel();
        assert!(!gate.is_still_valid(&dave, at(0)));
    }
    // A replaced token of the user is invalid, unless the kernel confirms the program's user.
    let user = super::gate::gate(AuthRequirement::User, ME, 5);
    let user = user.authenticate(&MINE, at(0)).unwrap();
    assert_eq!(own, user);
    for exchanged in [Some(&token(8)), None] {
        gate.set_keys(Keys::new(exchanged, Keyring::default(), None));
        assert!(!gate.is_still_valid(&own, at(0)));
        assert!(gate.is_still_valid(&user, at(0)));
    }
}

#[test]
fn a_right_token_is_accepted_after_many_wrong_ones() {
    let gate = gate(AuthRequirement::User, ME, 5);
    let now = at(0);
    let show = |text: &str| gate.authenticate(&with_token(text), now);
    for _ in 0..5 {
        assert_eq!(show("wrong"), Err(Denial::Wrong));
    }
    assert_eq!(show("wrong"), Err(Denial::TooOften(MINUTE / 5)));
    assert_eq!(show(token(7).reveal()), Err(Denial::TooOften(MINUTE / 5)));
    assert!(show(token(1).reveal()).is_ok());
    assert!(gate.authenticate(&MINE, now).is_ok());
    assert_eq!(gate.authenticate(&NOTHING, now), Err(Denial::Missing));
}

#[test]
fn five_failures_a_minute_are_allowed_and_the_sixth_is_delayed() {
    let mut attempts = FailedAttempts::new(5);
    let start = Instant::now();
    let (here, there) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    for _ in 0..5 {
        assert_eq!(attempts.record(here, start), Ok(()));
    }
    assert_eq!(attempts.record(here, start), Err(MINUTE / 5));
    assert_eq!(attempts.record(here, start + MINUTE / 10), Err(MINUTE / 10));
    assert_eq!(attempts.record(there, start), Ok(()));
    assert_eq!(attempts.record(here, start + MINUTE / 5), Ok(()));
    assert!(attempts.record(here, start + MINUTE / 5).is_err());
    for _ in 0..5 {
        assert_eq!(attempts.record(here, start + 3 * MINUTE), Ok(()));
    }
    // What was not used is not saved up.
    assert!(attempts.record(here, start + 3 * MINUTE).is_err());
}

#[test]
fn an_ipv6_prefix_counts_as_one_address_and_a_mapped_one_as_ipv4() {
    let mut attempts = FailedAttempts::new(1);
    let now = Instant::now();
    let mut fail = |text: &str| attempts.record(text.parse().unwrap(), now).is_ok();
    assert!(fail("2001:db8::1"));
    assert!(!fail("2001:db8::2:3"));
    assert!(fail("2001:db8:0:1::1"));
    assert!(fail("192.0.2.9"));
    assert!(!fail("::ffff:192.0.2.9"));
}

#[test]
fn the_table_of_addresses_is_bounded() {
    let mut attempts = FailedAttempts::new(5);
    let start = Instant::now();
    for number in 0..20_000_u32 {
        let now = start + Duration::from_micros(number.into());
        let address = IpAddr::from(number.to_be_bytes());
        assert_eq!(attempts.record(address, now), Ok(()));
        assert!(attempts.remembered() <= 4096);
    }
    assert!(attempts.remembered() > 1000);
}

#[test]
fn a_certificate_grants_the_agents_of_its_name() {
    let gate = gate(AuthRequirement::Credential, ME, 5);
    let names = |list: &[(&str, Agents)]| {
        let list = list.iter().cloned();
        let names = list.map(|(name, agents)| (name.to_owned(), agents));
        let ring = Keyring::default();
        gate.set_keys(Keys::new(None, ring, Some(Arc::new(names.collect()))));
    };
    let enter = |name: &str| {
        let certificate = Certificate {
            name: Arc::from(name),
            expires: EXPIRY,
        };
        gate.authenticate(&with_certificate(&certificate), at(0))
    };
    let these = |list: &[&str]| Agents::These(list.iter().map(|name| (*name).to_owned()).collect());
    assert!(enter("anybody.example").unwrap().may_use("goose"));
    names(&[("ci.example", these(&["goose"])), ("ops", Agents::All)]);
    let (ci, ops) = (enter("ci.example").unwrap(), enter("ops").unwrap());
    assert!(ci.may_use("goose") && !ci.may_use("claude") && !ci.grant.admin);
    assert!(ops.may_use("goose") && ops.may_use("claude"));
    for other in ["anybody.example", "CI.example", "ci.example.", ""] {
        assert_eq!(enter(other), Err(Denial::Missing), "{other}");
    }
    // A grant that grows stays valid, one that shrinks does not.
    names(&[("ci.example", these(&["goose", "claude"]))]);
    assert!(gate.is_still_valid(&ci, at(0)) && !gate.is_still_valid(&ops, at(0)));
    names(&[
        ("ci.example", these(&["claude"])),
        ("ops", these(&["goose"])),
    ]);
    assert!(!gate.is_still_valid(&ci, at(0)) && !gate.is_still_valid(&ops, at(0)));
}

#[test]
fn a_gate_with_new_rules_shares_the_keys() {
    let before = gate(AuthRequirement::User, ME, 5);
    let after = before.with_rules(GateRules {
        loopback: AuthRequirement::Credential,
        network: AuthRequirement::Credential,
        user: (ME, Arc::from("me")),
        failures: 5,
    });
    assert_eq!(
        after.requirement(Reachability::Loopback),
        AuthRequirement::Credential
    );
    let token = token(1);
    let claim = with_token(token.reveal());
    let alice = before.authenticate(&claim, at(0)).unwrap();
    assert!(after.authenticate(&claim, at(0)).is_ok());
    // Keys removed there are removed here.
    after.set_keys(Keys::default());
    assert!(!before.is_still_valid(&alice, at(0)));
}
