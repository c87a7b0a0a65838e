//! Agents on many machines, as far as that needs no servers: parts of messages, tickets, and where a
//! conversation is placed. `tests/peers/cluster.py` is the rest.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use acp_relay::auth::Principal;
use acp_relay::auth::address::Network;
use acp_relay::cluster::{
    Claims, Directory, HostRecord, Joined, Joiner, Purpose, SessionRecord, Signer, Splitter,
    TicketError, Verifier, is_given_up, owners,
};
use acp_relay::jsonrpc::Frame;
use bytes::Bytes;

use crate::config::stage::Stage;
use crate::support::link::run as block_on;
use crate::support::program::run;

const LEASE: Duration = Duration::from_secs(30);

#[test]
fn a_message_is_whole_again_whatever_the_payload_of_the_server() {
    for payload in [10, 11, 64, 1 << 20] {
        let (mut splitter, mut joiner) = (Splitter::new(payload), Joiner::new(1 << 20));
        for length in [0, 1, 2, 55, 56, 57, 1000] {
            let frame = Frame::new(vec![b'x'; length]);
            let parts: Vec<Bytes> = splitter.split(&frame).collect();
            assert!(parts.iter().all(|part| part.len() <= payload), "{payload}");
            let (last, before) = parts.split_last().unwrap();
            for part in before {
                assert_eq!(joiner.join(part), Ok(Joined::More));
            }
            assert_eq!(joiner.join(last), Ok(Joined::Message(frame)));
        }
        assert_eq!(joiner.join(&splitter.end()), Ok(Joined::End));
    }
}

#[test]
fn a_part_that_is_missing_doubled_or_foreign_ends_the_carrier() {
    let mut splitter = Splitter::new(12);
    let parts: Vec<Bytes> = splitter.split(&Frame::new("abcdefgh")).collect();
    let mut kind = parts[0].to_vec();
    kind[8] = 7;
    let table: [(&str, Vec<Bytes>); 5] = [
        ("missing", vec![parts[0].clone(), parts[2].clone()]),
        ("missing", vec![parts[0].clone(), parts[0].clone()]),
        ("another program", vec![Bytes::from_static(b"short")]),
        ("no kind", vec![kind.into()]),
        ("longer than 5", parts),
    ];
    for (why, parts) in table {
        let mut joiner = Joiner::new(5);
        let joined: Result<Vec<Joined>, String> =
            parts.iter().map(|part| joiner.join(part)).collect();
        let fault = joined.unwrap_err();
        assert!(fault.contains(why), "{fault}");
    }
}

#[test]
fn a_ticket_is_valid_once_for_its_host_and_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let trust = folder.path().join("trust");
    let ((ours, _), (others, _)) = (Signer::generate().unwrap(), Signer::generate().unwrap());
    std::fs::write(&trust, format!("# ours\n{}  # edge\n", ours.public_key())).unwrap();
    let now = 1_000_000;
    let claims = |host: &str| {
        Claims::of(
            &Principal::user("eve".into()),
            "goose",
            host,
            Purpose::Begin,
            now,
        )
        .unwrap()
    };
    let good = ours.sign(&claims("h.1")).unwrap();
    let (body, signature) = good.split_once('.').unwrap();
    let changed = ours.sign(&claims("h.2")).unwrap();
    let changed = format!("{}.{signature}", changed.split_once('.').unwrap().0);
    let table = [
        (good.clone(), now, None),
        (good.clone(), now, Some(TicketError::Used)),
        (ours.sign(&claims("h.1")).unwrap(), now + 30, None),
        (
            ours.sign(&claims("h.1")).unwrap(),
            now + 31,
            Some(TicketError::Expired),
        ),
        (
            ours.sign(&claims("h.1")).unwrap(),
            now - 31,
            Some(TicketError::Expired),
        ),
        (
            ours.sign(&claims("h.2")).unwrap(),
            now,
            Some(TicketError::OtherHost),
        ),
        (
            others.sign(&claims("h.1")).unwrap(),
            now,
            Some(TicketError::Untrusted),
        ),
        (changed, now, Some(TicketError::Untrusted)),
        (body.to_owned(), now, Some(TicketError::Malformed)),
        ("a.b.c".to_owned(), now, Some(TicketError::Malformed)),
        ("é".to_owned(), now, Some(TicketError::Malformed)),
    ];
    let verifier = Verifier::new(trust.clone(), "h.1".to_owned()).unwrap();
    for (ticket, now, expected) in table {
        assert_eq!(
            verifier.accept(&ticket, now).err(),
            expected,
            "{ticket} at {now}"
        );
    }
    // The principal may use the agent of the ticket, and nothing more.
    let ticket = ours.sign(&claims("h.1")).unwrap();
    let principal = verifier.accept(&ticket, now).unwrap().guest.principal(None);
    assert!(principal.may_use("goose") && !principal.may_use("gemini"));
    assert!(principal == Principal::user("eve".into()) && !principal.grant.admin);
    // A key that is removed is not trusted any more.
    std::fs::write(&trust, "").unwrap();
    let ticket = ours.sign(&claims("h.1")).unwrap();
    assert_eq!(
        verifier.accept(&ticket, now).err(),
        Some(TicketError::Untrusted)
    );
    assert!(Claims::of(&Principal::anonymous(), "goose", "h.1", Purpose::Begin, now).is_none());
}

fn record(agents: &str, open: usize, capacity: usize) -> HostRecord {
    HostRecord {
        v: 1,
        agents: agents.split(' ').map(str::to_owned).collect(),
        capacity,
        open,
        labels: [("zone".to_owned(), "a".to_owned())].into(),
        ..HostRecord::default()
    }
}

fn names(directory: &Directory, agent: &str, now: Instant) -> String {
    let found = directory.candidates(agent, now).into_iter();
    found
        .map(|placement| placement.host)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_conversation_is_placed_on_the_least_loaded_host_that_may_have_it() {
    let begin = Instant::now();
    let mut directory = Directory::new(LEASE, BTreeMap::from([("zone".into(), "a".into())]));
    let hosts = [
        ("half", record("goose", 5, 10)),
        ("idle", record("goose gemini", 0, 10)),
        ("full", record("goose", 10, 10)),
        ("wrong", record("goose", 1, 0)),
        ("other", record("gemini", 0, 1)),
        (
            "drained",
            HostRecord {
                draining: true,
                ..record("goose", 0, 10)
            },
        ),
        (
            "elsewhere",
            HostRecord {
                labels: BTreeMap::new(),
                ..record("goose", 0, 10)
            },
        ),
        (
            "later",
            HostRecord {
                v: 2,
                ..record("goose", 0, 10)
            },
        ),
    ];
    for (host, record) in hosts {
        let record = serde_json::to_vec(&record).unwrap();
        let heard = directory.heard(host, (&record, 1), begin);
        assert_eq!(heard.is_err(), host == "later", "{heard:?}");
    }
    assert!(directory.heard("torn", (b"{", 1), begin).is_err());
    assert_eq!(names(&directory, "goose", begin), "idle half full wrong");
    assert_eq!(names(&directory, "none", begin), "");
    // What was placed counts until the host says more.
    for _ in 0..6 {
        directory.placed("idle");
    }
    assert_eq!(names(&directory, "goose", begin), "half idle full wrong");
    let again = serde_json::to_vec(&record("goose", 1, 10)).unwrap();
    directory
        .heard("idle", (&again, 2), begin + LEASE / 2)
        .unwrap();
    assert_eq!(
        names(&directory, "goose", begin + LEASE / 2),
        "idle half full wrong"
    );
    // One that said nothing for long is silent, unless the servers have something newer.
    let silent = [
        ("half", 1, 24),
        ("half", 1, 25),
        ("half", 2, 25),
        ("idle", 2, 25),
    ];
    let silent = silent.map(|(host, revision, after)| {
        directory.is_silent(host, revision, begin + Duration::from_secs(after))
    });
    assert_eq!(silent, [false, true, false, false]);
    // The others were not renewed.
    let late = begin + LEASE;
    assert_eq!(names(&directory, "goose", late), "idle");
    assert!(directory.find("idle", late).is_some() && directory.find("half", late).is_none());
    // The names of agents stay known for a while, so that a client is told to try again.
    assert_eq!(directory.agents(late).0.len(), 1);
    directory.gone("idle");
    assert_eq!(directory.agents(late + LEASE).0.len(), 1);
    let (later, _) = directory.agents(late + Duration::from_secs(3600));
    assert!(later.is_empty());
}

fn says(directory: &mut Directory, host: &str, agents: &[String], now: Instant) -> String {
    let record = HostRecord {
        agents: agents.iter().cloned().collect(),
        ..record("x", 0, 1)
    };
    let record = serde_json::to_vec(&record).unwrap();
    let heard = directory.heard(host, (&record, 1), now);
    heard.err().unwrap_or_default()
}

#[test]
fn a_network_has_the_addresses_that_begin_as_it_does() {
    let table = [
        (
            "10.1.0.0/16",
            "10.1.255.1 ::ffff:10.1.0.1",
            "10.2.0.1 ::a01:1 11.1.0.1",
        ),
        ("10.1.2.3", "10.1.2.3", "10.1.2.2"),
        ("0.0.0.0/0", "1.2.3.4", "::1"),
        ("::/0", "::1 2001:db8::1", ""),
        ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
        ("::1/128", "::1", "::2 127.0.0.1"),
    ];
    for (network, inside, outside) in table {
        let network: Network = network.parse().unwrap();
        let has = |text: &str| network.contains(text.parse().unwrap());
        assert!(inside.split_whitespace().all(has), "{network:?}");
        assert!(!outside.split_whitespace().any(has), "{network:?}");
    }
    for fault in [
        "",
        "10.1.0.0/33",
        "::/129",
        "10.1.0.0/",
        "10.1.0.0/-1",
        "x/8",
        "10.1/16",
    ] {
        assert!(fault.parse::<Network>().is_err(), "{fault}");
    }
}

#[test]
fn what_a_host_says_is_bounded() {
    let now = Instant::now();
    let mut directory = Directory::new(LEASE, BTreeMap::new());
    let named = |count: usize| -> Vec<String> { (0..count).map(|n| format!("a{n}")).collect() };
    let long = |length: usize| vec!["x".repeat(length)];
    assert_eq!(says(&mut directory, "h.1", &named(1000), now), "");
    assert_eq!(says(&mut directory, "h.2", &long(64), now), "");
    for (agents, why) in [
        (named(1001), "1000 agents"),
        (long(65), "64 bytes"),
        (long(65 << 10), "65536 bytes"),
    ] {
        // Nor is what it said before.
        let fault = says(&mut directory, "h.2", &agents, now);
        assert!(fault.contains(why), "{fault}");
        assert!(directory.find("h.2", now).is_none());
    }
    // A host's name has some processes at a time; those of other names do not count.
    for number in 2..20 {
        let fault = says(&mut directory, &format!("h.{number}"), &long(1), now);
        assert_eq!(fault.is_empty(), number < 17, "{number}: {fault}");
    }
    assert_eq!(says(&mut directory, "h.5", &long(2), now), "");
    assert_eq!(says(&mut directory, "other.1", &long(1), now), "");
    assert_eq!(directory.all(now).len(), 17);
    assert_eq!(says(&mut directory, "h.99", &long(1), now + LEASE), "");
    // It is said once for all processes of a host.
    let mut news = |host, what| directory.is_news(host, what, now);
    let table = [("h.1", "a"), ("h.2", "a"), ("h.1", "b"), ("other.1", "a")];
    let said = table.map(|(host, what)| news(host, what));
    assert_eq!(said, [true, false, true, true]);
    assert!(directory.is_news("h.1", "a", now + Duration::from_secs(601)));
}

#[test]
fn hosts_share_what_a_gateway_offers() {
    let now = Instant::now();
    let named = |prefix: &str, count: usize| -> Vec<String> {
        (0..count).map(|n| format!("{prefix}{n:04}")).collect()
    };
    let mut directory = Directory::new(LEASE, BTreeMap::new());
    // One name with many processes, and one with as many agents as there may be.
    for process in 0..4 {
        let agents = named(&format!("0{process}"), 1000);
        assert_eq!(
            says(&mut directory, &format!("many.{process}"), &agents, now),
            ""
        );
    }
    assert_eq!(says(&mut directory, "big.1", &named("5", 1000), now), "");
    assert_eq!(says(&mut directory, "small.1", &named("z", 100), now), "");
    let (offered, left_out) = directory.agents(now);
    let of = |prefix: &str| {
        offered
            .iter()
            .filter(|name| name.starts_with(prefix))
            .count()
    };
    assert_eq!(
        [of("0"), of("5"), of("z"), offered.len()],
        [450, 450, 100, 1000]
    );
    assert!(left_out.iter().eq(["big", "many"]), "{left_out:?}");
    // Names of hosts that have ended leave room for those of others.
    let late = now + LEASE;
    assert_eq!(says(&mut directory, "small.1", &named("z", 100), late), "");
    let (offered, left_out) = directory.agents(late);
    assert_eq!(
        offered.iter().filter(|name| name.starts_with('z')).count(),
        100
    );
    assert!(offered.len() == 1000 && left_out.is_empty());
    assert_eq!(says(&mut directory, "new.1", &named("9", 900), late), "");
    let (offered, left_out) = directory.agents(late);
    assert!(offered.iter().all(|name| name.starts_with(['z', '9'])));
    assert!(left_out.is_empty());
}

#[test]
fn a_session_is_that_of_the_first_host_or_of_those_that_hold_it() {
    let table = [
        ("", ""),
        ("a", "a"),
        ("a b", "a"),
        // A renewal moves an entry behind those that ask.
        ("b A", "b A"),
        ("A b", "A"),
        ("a B c D", "a B D"),
    ];
    for (entries, expected) in table {
        let entries = entries.split_whitespace().zip(5..);
        let entries: Vec<SessionRecord> = entries
            .map(|(host, revision)| SessionRecord {
                held: host.starts_with(|c: char| c.is_ascii_uppercase()),
                host: host.to_owned(),
                revision,
                ..SessionRecord::default()
            })
            .collect();
        let found: Vec<&str> = owners(&entries).map(|entry| &*entry.host).collect();
        assert_eq!(found.join(" "), expected);
    }
}

#[test]
fn a_claim_is_given_up_in_time_to_stop_the_agent() {
    let renewed = Instant::now();
    let table = [
        (12, 17, false),
        (12, 18, true),
        (0, 29, false),
        (0, 30, true),
        (60, 0, true),
    ];
    for (stop, after, over) in table {
        let now = renewed + Duration::from_secs(after);
        let stop = Duration::from_secs(stop);
        assert_eq!(is_given_up(renewed, now, stop), over, "{stop:?} {after}");
    }
}

#[test]
fn the_configuration_file_has_the_options_too() {
    const AGENT: &str = "[agents.a]\ncommand = [\"cat\"]\n";
    let whole = "servers = [\"nats://eve:planted-password@n1\"]\nlabels = [\"zone=a\"]\ncapacity = 7\ndirect = [\"10.1.0.0/16\", \"::1\"]";
    let without = "trust = \"trust\"";
    block_on(async {
        let config = async |subcommand: &str, keys: &str| {
            let stage = Stage::with(&format!("[cluster]\n{keys}\n{AGENT}"));
            let file = stage.file();
            let place = file.to_str().unwrap();
            match subcommand {
                "show" => run(&["config", "show", "--config", place], "").await,
                _ => run(&["config", "check", place], "").await,
            }
        };
        assert_eq!(config("check", whole).await.code, Some(0));
        let shown = config("show", whole).await.stdout;
        assert!(shown.contains("capacity = 7 "), "{shown}");
        assert!(shown.contains("10.1.0.0/16"), "{shown}");
        let fault = config("check", "servers = [\"nats://n1\"]\ndirect = [\"10.1/16\"]").await;
        assert!(fault.stderr.contains("ADDRESS/BITS"), "{}", fault.stderr);
        assert!(!shown.contains("planted-password"), "{shown}");
        let fault = config("check", without).await.stderr;
        assert!(
            fault.contains("cluster") && fault.contains("servers"),
            "{fault}"
        );
    });
}
