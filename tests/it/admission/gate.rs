//! What the gate says to whom, and how it counts those who are wrong.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_relay::auth::{
    Admission, Agents, Attempts, Certificate, Claim, Denial, Gate, Grant, Key, KeyId, Keyring,
    Keys, Means, Moment, Place, Rules, Token,
};

const MINUTE: Duration = Duration::from_secs(60);
const ME: u32 = 1000;
/// In the past, for those who have a clock.
const EXPIRY: u64 = 1_000_000_000;

fn at(unix: u64) -> Moment {
    Moment {
        instant: Instant::now(),
        unix,
    }
}

pub(super) fn token(number: u8) -> Token {
    Token::new([number; 6], [number; 32])
}

pub(super) fn key(number: u8, name: &str, expires: Option<u64>) -> Key {
    let token = token(number);
    Key {
        id: KeyId::of(token.reveal().as_bytes()).unwrap(),
        digest: token.digest(),
        name: name.to_owned(),
        expires,
        grant: Grant::everything(false),
    }
}

pub(super) fn gate(loopback: Admission, user: u32, failures: usize) -> Gate {
    let gate = Gate::new(Rules {
        loopback,
        network: Admission::Credential,
        user: (user, Arc::from("me")),
        failures,
    });
    let mut ring = Keyring::default();
    ring.add(key(1, "alice", None)).unwrap();
    ring.add(key(2, "bob", Some(EXPIRY))).unwrap();
    gate.set_keys(Keys::new(Some(&token(9)), ring, None));
    gate
}

const NOTHING: Claim<'_> = Claim {
    place: Place::Loopback,
    address: Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)),
    user: None,
    certificate: None,
    token: None,
};

#[test]
fn each_claim_has_its_answer_at_each_place() {
    let certificate = Certificate {
        name: Arc::from("host.example"),
        expires: EXPIRY,
    };
    let token = |number| token(number).reveal().to_owned();
    let (alice, bob, own, unknown) = (token(1), token(2), token(9), token(7));
    let wrong = alice.replace("AQEB", "AgIC");
    let with = |text| Claim {
        token: Some(str::as_bytes(text)),
        ..NOTHING
    };
    let mine = Claim {
        user: Some(ME),
        ..NOTHING
    };
    let certified = Claim {
        certificate: Some(&certificate),
        ..NOTHING
    };
    let all = [
        (NOTHING, Err(Denial::Missing)),
        (mine, Ok((Means::User, "me"))),
        (
            Claim {
                user: Some(ME + 1),
                ..NOTHING
            },
            Err(Denial::Missing),
        ),
        (with(&alice), Ok((Means::Token, "alice"))),
        (with(&bob), Ok((Means::Token, "bob"))),
        (with(&own), Ok((Means::User, "me"))),
        (with(&unknown), Err(Denial::Wrong)),
        (with(&wrong), Err(Denial::Wrong)),
        (with(""), Err(Denial::Wrong)),
        // What is shown counts, even if nothing had to be.
        (
            Claim {
                token: Some(b"x"),
                ..mine
            },
            Err(Denial::Wrong),
        ),
        (certified, Ok((Means::Certificate, "host.example"))),
    ];
    let ask = |gate: &Gate, claim| {
        let judged = gate.judge(&claim, at(EXPIRY - 1));
        judged.map(|who| (who.means, who.name.to_string()))
    };
    let by_user = gate(Admission::User, ME, 1000);
    for (claim, expected) in all {
        let expected = expected.map(|(means, name)| (means, name.to_owned()));
        assert_eq!(ask(&by_user, claim), expected, "{claim:?}");
        // Where a credential is wanted, being the user is none.
        let mut strict = expected.clone();
        if claim.token.is_none() && claim.certificate.is_none() {
            strict = Err(Denial::Missing);
        }
        let network = Claim {
            place: Place::Network,
            ..claim
        };
        assert_eq!(ask(&by_user, network), strict, "{network:?}");
        let by_token = gate(Admission::Credential, ME, 1000);
        assert_eq!(ask(&by_token, claim), strict, "{claim:?}");
        // Where anybody may come in, nothing is wrong.
        let open = gate(Admission::Anybody, ME, 1000);
        let who = ask(&open, claim).unwrap();
        match expected {
            Ok((means, name)) if means != Means::User || claim.token.is_some() => {
                assert_eq!(who, (means, name));
            }
            _ => assert_eq!(who, (Means::Nobody, "anonymous".to_owned())),
        }
    }
    // A Unix socket is the user's own, whatever loopback wants.
    let socket = |gate: &Gate, user| {
        let claim = Claim {
            place: Place::Socket,
            address: None,
            user: Some(user),
            ..NOTHING
        };
        gate.judge(&claim, at(0)).map(|who| who.means)
    };
    let strict = gate(Admission::Credential, ME, 1000);
    assert_eq!(socket(&strict, ME), Ok(Means::User));
    assert_eq!(socket(&strict, 0), Err(Denial::Missing));
}

#[test]
fn what_is_no_longer_good_lets_nobody_stay() {
    let gate = gate(Admission::Credential, ME, 5);
    let enter = |number, unix| {
        let token = token(number);
        let claim = Claim {
            token: Some(token.reveal().as_bytes()),
            ..NOTHING
        };
        gate.judge(&claim, at(unix))
    };
    let (alice, bob) = (enter(1, 0).unwrap(), enter(2, EXPIRY - 1).unwrap());
    assert!(gate.still_admits(&bob, at(EXPIRY - 1)));
    assert!(!gate.still_admits(&bob, at(EXPIRY)));
    assert_eq!(enter(2, EXPIRY), Err(Denial::Wrong));
    assert!(gate.still_admits(&alice, at(EXPIRY)));
    let own = enter(9, 0).unwrap();
    // Another token of the same name is another token.
    let mut ring = Keyring::default();
    ring.add(key(3, "alice", None)).unwrap();
    gate.set_keys(Keys::new(Some(&token(9)), ring, None));
    assert!(!gate.still_admits(&alice, at(0)));
    assert_eq!(enter(1, 0), Err(Denial::Wrong));
    assert!(gate.still_admits(&enter(3, 0).unwrap(), at(0)));
    assert!(gate.still_admits(&own, at(0)));
    // Nor is the user's own what it was before, while the kernel still says whose a program is.
    let mine = Claim {
        user: Some(ME),
        ..NOTHING
    };
    let user = super::gate::gate(Admission::User, ME, 5);
    let user = user.judge(&mine, at(0)).unwrap();
    assert_eq!(own, user);
    for exchanged in [Some(&token(8)), None] {
        gate.set_keys(Keys::new(exchanged, Keyring::default(), None));
        assert!(!gate.still_admits(&own, at(0)));
        assert!(gate.still_admits(&user, at(0)));
    }
}

#[test]
fn the_right_token_is_good_however_often_others_were_wrong() {
    let gate = gate(Admission::User, ME, 5);
    let now = at(0);
    let show = |text: &str| {
        let claim = Claim {
            token: Some(text.as_bytes()),
            ..NOTHING
        };
        gate.judge(&claim, now)
    };
    for _ in 0..5 {
        assert_eq!(show("wrong"), Err(Denial::Wrong));
    }
    assert_eq!(show("wrong"), Err(Denial::TooOften(MINUTE / 5)));
    assert_eq!(show(token(7).reveal()), Err(Denial::TooOften(MINUTE / 5)));
    assert!(show(token(1).reveal()).is_ok());
    let mine = Claim {
        user: Some(ME),
        ..NOTHING
    };
    assert!(gate.judge(&mine, now).is_ok());
    assert_eq!(gate.judge(&NOTHING, now), Err(Denial::Missing));
}

#[test]
fn five_a_minute_are_borne_and_the_sixth_has_to_wait() {
    let mut attempts = Attempts::new(5);
    let start = Instant::now();
    let (here, there) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    for _ in 0..5 {
        assert_eq!(attempts.fail(here, start), Ok(()));
    }
    assert_eq!(attempts.fail(here, start), Err(MINUTE / 5));
    assert_eq!(attempts.fail(here, start + MINUTE / 10), Err(MINUTE / 10));
    assert_eq!(attempts.fail(there, start), Ok(()));
    assert_eq!(attempts.fail(here, start + MINUTE / 5), Ok(()));
    assert!(attempts.fail(here, start + MINUTE / 5).is_err());
    for _ in 0..5 {
        assert_eq!(attempts.fail(here, start + 3 * MINUTE), Ok(()));
    }
}

#[test]
fn an_ipv6_customer_has_one_address_and_a_mapped_one_is_ipv4() {
    let mut attempts = Attempts::new(1);
    let now = Instant::now();
    let mut fail = |text: &str| attempts.fail(text.parse().unwrap(), now).is_ok();
    assert!(fail("2001:db8::1"));
    assert!(!fail("2001:db8::2:3"));
    assert!(fail("2001:db8:0:1::1"));
    assert!(fail("192.0.2.9"));
    assert!(!fail("::ffff:192.0.2.9"));
}

#[test]
fn a_flood_of_addresses_is_bounded() {
    let mut attempts = Attempts::new(5);
    let start = Instant::now();
    for number in 0..20_000_u32 {
        let now = start + Duration::from_micros(number.into());
        let address = IpAddr::from(number.to_be_bytes());
        assert_eq!(attempts.fail(address, now), Ok(()));
        assert!(attempts.remembered() <= 4096);
    }
    assert!(attempts.remembered() > 1000);
}

#[test]
fn a_certificate_is_good_for_the_agents_of_its_name() {
    let gate = gate(Admission::Credential, ME, 5);
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
        let claim = Claim {
            certificate: Some(&certificate),
            ..NOTHING
        };
        gate.judge(&claim, at(0))
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
    // Who may do more stays, who may do less does not.
    names(&[("ci.example", these(&["goose", "claude"]))]);
    assert!(gate.still_admits(&ci, at(0)) && !gate.still_admits(&ops, at(0)));
    names(&[
        ("ci.example", these(&["claude"])),
        ("ops", these(&["goose"])),
    ]);
    assert!(!gate.still_admits(&ci, at(0)) && !gate.still_admits(&ops, at(0)));
}

#[test]
fn a_gate_in_the_place_of_another_has_its_keys() {
    let before = gate(Admission::User, ME, 5);
    let after = before.with_rules(Rules {
        loopback: Admission::Credential,
        network: Admission::Credential,
        user: (ME, Arc::from("me")),
        failures: 5,
    });
    assert_eq!(after.admission(Place::Loopback), Admission::Credential);
    let token = token(1);
    let claim = Claim {
        token: Some(token.reveal().as_bytes()),
        ..NOTHING
    };
    let alice = before.judge(&claim, at(0)).unwrap();
    assert!(after.judge(&claim, at(0)).is_ok());
    // Taken away there, it is taken away here.
    after.set_keys(Keys::default());
    assert!(!before.still_admits(&alice, at(0)));
}
