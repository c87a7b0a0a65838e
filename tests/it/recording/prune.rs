//! Old recordings are deleted, and nothing else: no recording that is being written, and no file
//! that only looks like one.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use acp_relay::observe::recorder::{PruneReason, Retention, prune};
use acp_relay::recording::{Header, write};
use proptest::prelude::*;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::metrics::stage::Relay;
use crate::support::program::{Program, run};

const HOUR: Duration = Duration::from_secs(3600);

/// A file that was written to a moment ago is not deleted.
const YOUNG: Duration = Duration::from_secs(60);

/// A file of `bytes` that was written `age` ago, with the header of the recording `id`.
fn file(path: &Path, id: &str, bytes: usize, age: Duration) -> File {
    let header = Header {
        id: format!("{id}{}", "0".repeat(24)),
        ..Header::default()
    };
    let mut text = Vec::new();
    write::header(&mut text, &header);
    text.resize(bytes.max(text.len()), b'\n');
    fs::write(path, text).unwrap();
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
    file
}

fn file_names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let files = fs::read_dir(folder).unwrap().map(name);
    let mut names: Vec<_> = files.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn within(age: Option<Duration>, total: Option<u64>) -> Retention {
    Retention { age, total }
}

#[test]
fn an_old_recording_is_deleted_with_all_its_files() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let path = |name: &str| folder.join(name);
    let old = "20260101T000000Z-aaaaaaaa";
    file(&path(&format!("{old}.000.acpr")), "aaaaaaaa", 0, 3 * HOUR);
    file(&path(&format!("{old}.001.acpr")), "aaaaaaaa", 0, 2 * HOUR);
    fs::write(path(&format!("{old}.001.acpr.marks")), "x\n").unwrap();
    let part = path(&format!("{old}.000.acpr.zst.part"));
    fs::write(&part, "half").unwrap();
    let part = File::options().append(true).open(part).unwrap();
    part.set_modified(SystemTime::now() - 2 * HOUR).unwrap();
    // Its first file is as old, but a later one is not.
    let long = "20260101T000000Z-bbbbbbbb";
    file(&path(&format!("{long}.000.acpr")), "bbbbbbbb", 0, 3 * HOUR);
    file(&path(&format!("{long}.001.acpr")), "bbbbbbbb", 0, HOUR / 2);
    let keep = within(Some(HOUR), None);
    let before = file_names(folder);
    let planned = prune(folder, keep, SystemTime::now(), true).unwrap();
    assert_eq!(file_names(folder), before);
    let pruned = prune(folder, keep, SystemTime::now(), false).unwrap();
    assert_eq!(planned.deleted, pruned.deleted);
    let gone: Vec<_> = pruned
        .deleted
        .iter()
        .map(|gone| (&*gone.name, gone.reason))
        .collect();
    assert_eq!(gone, [(old, PruneReason::Age)]);
    let stays = [format!("{long}.000.acpr"), format!("{long}.001.acpr")];
    assert_eq!(file_names(folder), stays);
}

#[test]
fn recordings_being_written_and_other_files_are_kept() {
    let now = SystemTime::now();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let path = |name: &str| folder.join(name);
    for name in [
        // Named by a user, or written by another program.
        "talk.acpr",
        "talk.000.acpr",
        "20260101T000000Z-cccccccc.acpr",
        "20260101T000000Z-cccccccc.000.acpr.bak",
        "20260101T000000Z-cccccccc.000.acpr.part",
        "20260101T000000Z-ccccccc.000.acpr",
        "20260101T000000-cccccccc.000.acpr",
        "20260101-cccccccc.000.acpr",
        "x20260101T000000Z-cccccccc.000.acpr",
        "20260101T000000Z-cccccccg.000.acpr",
        "20260101T000000Z-cccccccc.00.acpr",
        "20260101T000000Z-cccccccc.0x0.acpr",
        "20260101T000000Z-cccccccc.000.json",
        // With the header of another recording.
        "20260101T000000Z-dddddddd.000.acpr",
    ] {
        file(&path(name), "cccccccc", 0, 9 * HOUR);
    }
    let none = path("20260101T000000Z-eeeeeeee.000.acpr");
    fs::write(&none, "notes of mine\n").unwrap();
    let none = File::options().append(true).open(none).unwrap();
    none.set_modified(SystemTime::now() - 9 * HOUR).unwrap();
    // One file of several.
    file(
        &path("20260101T000000Z-abababab.000.acpr"),
        "abababab",
        0,
        9 * HOUR,
    );
    file(
        &path("20260101T000000Z-abababab.001.acpr"),
        "cccccccc",
        0,
        9 * HOUR,
    );
    let elsewhere = tempfile::tempdir().unwrap();
    let linked = elsewhere.path().join("real.acpr");
    file(&linked, "ffffffff", 0, 9 * HOUR);
    symlink(&linked, path("20260101T000000Z-ffffffff.000.acpr")).unwrap();
    fs::create_dir(path("20260101T000000Z-01234567.000.acpr")).unwrap();
    // A conversation that has been silent for long, and one that ended just now.
    let quiet = file(
        &path("20260101T000000Z-89abcdef.000.acpr"),
        "89abcdef",
        0,
        9 * HOUR,
    );
    quiet.try_lock().unwrap();
    file(
        &path("20260101T000000Z-76543210.000.acpr"),
        "76543210",
        0,
        Duration::ZERO,
    );
    let before = file_names(folder);
    let keep = within(Some(YOUNG), Some(0));
    let pruned = prune(folder, keep, now, false).unwrap();
    assert!(pruned.deleted.is_empty(), "{:?}", pruned.deleted);
    assert_eq!(file_names(folder), before);
    assert!(linked.exists());
    // The conversation has ended.
    drop(quiet);
    let pruned = prune(folder, keep, now, false).unwrap();
    assert_eq!(pruned.deleted[0].name, "20260101T000000Z-89abcdef");
    assert_eq!(file_names(folder).len(), before.len() - 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The oldest are deleted, and no more than necessary.
    #[test]
    fn the_oldest_recordings_are_deleted_until_the_others_fit(
        stored in proptest::collection::vec((2_u32..200, 600_usize..3000, any::<bool>()), 0..8),
        total in 0_u64..12_000,
        age in proptest::option::of(2_u32..200),
    ) {
        let place = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        let mut locks = Vec::new();
        for (at, (minutes, bytes, written)) in stored.iter().enumerate() {
            let id = format!("{at:08x}");
            let name = format!("20260101T000000Z-{id}");
            let age = YOUNG * *minutes + Duration::from_secs(at as u64);
            let file = file(&place.path().join(format!("{name}.000.acpr")), &id, *bytes, age);
            if *written {
                file.try_lock().unwrap();
                locks.push(file);
            }
            all.push((age, name, *bytes as u64, *written));
        }
        let most = age.map(|minutes| YOUNG * minutes);
        let keep = within(most, Some(total));
        let pruned = prune(place.path(), keep, SystemTime::now(), false).unwrap();
        all.sort();
        all.reverse();
        let mut sum: u64 = all.iter().map(|(_, _, bytes, _)| bytes).sum();
        let mut expected = Vec::new();
        for (age, name, bytes, written) in &all {
            if *written || !(most.is_some_and(|most| *age >= most) || sum > total) {
                continue;
            }
            sum -= bytes;
            expected.push(name.clone());
        }
        let gone: Vec<_> = pruned.deleted.iter().map(|gone| gone.name.clone()).collect();
        prop_assert_eq!(gone, expected);
        prop_assert_eq!(pruned.remaining, sum);
        let size = |name: &String| fs::metadata(place.path().join(name)).unwrap().len();
        let there: u64 = file_names(place.path()).iter().map(size).sum();
        prop_assert_eq!(there, sum);
    }
}

#[test]
fn for_the_total_only_what_was_just_written_is_spared() {
    let place = tempfile::tempdir().unwrap();
    let (now, ages) = (SystemTime::now(), [30, 20, 0].map(Duration::from_secs));
    for (id, age) in ["aaaaaaaa", "bbbbbbbb", "cccccccc"].into_iter().zip(ages) {
        let path = place.path().join(format!("20260101T000000Z-{id}.000.acpr"));
        file(&path, id, 1000, age);
    }
    let by_age = prune(place.path(), within(Some(ages[1]), None), now, true).unwrap();
    assert!(by_age.deleted.is_empty(), "{by_age:?}");
    let pruned = prune(place.path(), within(None, Some(500)), now, false).unwrap();
    assert_eq!((pruned.deleted.len(), pruned.remaining), (2, 1000));
}

/// Forty conversations in a moment have far more than the bound.
#[tokio::test]
async fn many_short_conversations_do_not_exceed_the_total() {
    const TOTAL: u64 = 64 << 10;
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().to_str().unwrap();
    let mut args = vec!["serve", "--listen", "tcp://127.0.0.1:0", "--record", folder];
    args.extend([
        "--record-redact",
        "full",
        "--record-max-total",
        "64KiB",
        "--",
        "cat",
    ]);
    let mut relay = Program::start(&args);
    let address = relay.address().await;
    let address = address.strip_prefix("tcp://").unwrap();
    for conversation in 0..40 {
        let words: Vec<String> = (0..4000)
            .map(|n| (n * 7919 + conversation).to_string())
            .collect();
        let text = words.join(" ");
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{{\"t\":\"{text}\"}}}}\n");
        let mut client = BufReader::new(TcpStream::connect(address).await.unwrap());
        client.write_all(line.as_bytes()).await.unwrap();
        let mut echo = String::new();
        client.read_line(&mut echo).await.unwrap();
        assert_eq!(echo, line);
    }
    let bytes = || {
        let files = fs::read_dir(place.path()).unwrap();
        let sizes = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
        sizes.sum::<u64>()
    };
    let until = Instant::now() + Duration::from_secs(45);
    while bytes() > TOTAL {
        assert!(Instant::now() < until, "{} bytes", bytes());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    relay.end();
}

/// Adds a recording that is too old, and one for which there is no room.
fn two(folder: &Path) -> [&'static str; 2] {
    let names = ["20260101T000000Z-aaaaaaaa", "20260101T000000Z-bbbbbbbb"];
    for (name, age) in names.into_iter().zip([2 * HOUR, HOUR / 2]) {
        let path = folder.join(format!("{name}.000.acpr"));
        file(&path, name.rsplit('-').next().unwrap(), 0, age);
    }
    names
}

const BOUNDS: [&str; 4] = ["--record-max-age", "1h", "--record-max-total", "1"];

#[test]
fn the_retention_limits_are_those_of_the_configuration_read_last() {
    let folder = tempfile::tempdir().unwrap();
    let tapes = folder.path().join("tapes");
    fs::create_dir(&tapes).unwrap();
    let [old, small] = two(&tapes);
    let config = folder.path().join("team.toml");
    let path = config.to_str().unwrap().to_owned();
    let write = |bound: &str| {
        let agent = "[agents.x]\ncommand = [\"cat\"]";
        let listener = "[[listeners]]\nendpoint = \"tcp://127.0.0.1:0\"";
        let record = format!("[record]\ndir = \"tapes\"\n{bound}");
        fs::write(&config, format!("{agent}\n{listener}\n{record}\n")).unwrap();
    };
    write("max-age = \"90d\"");
    let relay = Relay::serve(folder, &["--config", &path], &[]);
    let name = "acp_relay_recordings_pruned_total";
    let gone = |why| {
        relay.scrape_when("one is gone", |scrape| {
            scrape.value(name, &[("reason", why)]) == 1.
        })
    };
    write("max-age = \"1h\"");
    relay.signal(Signal::HUP);
    let scrape = gone("age");
    assert_eq!(scrape.value(name, &[("reason", "total")]), 0.);
    assert_eq!(file_names(&tapes), [format!("{small}.000.acpr")]);
    // A file with faults changes nothing.
    write("max-age = \"1h\"\nmax-total = \"little\"");
    relay.signal(Signal::HUP);
    let reloads = "acp_relay_config_reload_total";
    relay.scrape_when("it is refused", |scrape| {
        scrape.value(reloads, &[("outcome", "error")]) == 1.
    });
    file(
        &tapes.join(format!("{old}.000.acpr")),
        "aaaaaaaa",
        0,
        HOUR / 2,
    );
    write("max-total = \"1\"");
    relay.signal(Signal::HUP);
    relay.scrape_when("both are gone", |scrape| {
        scrape.value(name, &[("reason", "total")]) == 2.
    });
    assert!(file_names(&tapes).is_empty());
}

#[tokio::test]
async fn deleted_recordings_are_logged_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let names = two(folder.path());
    let mut args = vec!["--log", "info", "connect", "--record"];
    args.push(folder.path().to_str().unwrap());
    args.extend(BOUNDS);
    args.extend(["--", "cat"]);
    let mut relay = Program::start(&args);
    for (name, why) in names.into_iter().zip(["why=\"age\"", "why=\"total\""]) {
        loop {
            let line = relay.complaint().await.unwrap();
            if line.contains("deleted the recording") {
                assert!(line.contains(name) && line.contains(why), "{line}");
                break;
            }
        }
    }
    relay.end();
}

#[tokio::test]
async fn prune_requires_a_limit_and_prints_what_it_deletes() {
    let place = tempfile::tempdir().unwrap();
    let name = "20260101T000000Z-aaaaaaaa";
    let path = place.path().join(format!("{name}.000.acpr"));
    file(&path, "aaaaaaaa", 2048, 48 * HOUR);
    let folder = place.path().to_str().unwrap();
    let run_prune = async |args: &[&str]| {
        let outcome = run(&[&["inspect", "prune", folder], args].concat(), "").await;
        (outcome.code, outcome.stdout)
    };
    assert_eq!(run_prune(&[]).await.0, Some(64));
    assert_eq!(run_prune(&["--max-age", "30"]).await.0, Some(64));
    assert_eq!(run_prune(&["--max-age", "0d"]).await.0, Some(64));
    assert_eq!(run_prune(&["--max-total", "much"]).await.0, Some(64));
    let (code, text) = run_prune(&["--max-age", "3d", "--max-total", "2KiB"]).await;
    assert_eq!(
        (code, &*text),
        (Some(0), "0 recordings (0 B) deleted; 2.0 KiB remain\n")
    );
    let (_, text) = run_prune(&["--max-age", "1d", "--dry-run"]).await;
    assert_eq!(
        text,
        format!("{name}     2.0 KiB  age\n1 recordings (2.0 KiB) would be deleted; 0 B remain\n")
    );
    assert!(path.exists());
    let (_, text) = run_prune(&["--max-total", "2047", "--json"]).await;
    let expected =
        format!("{{\"name\":\"{name}\",\"bytes\":2048,\"why\":\"total\"}}\n{{\"left\":0}}\n");
    assert_eq!(text, expected);
    assert!(!path.exists());
    let missing = run(
        &["inspect", "prune", "/nowhere/at/all", "--max-age", "1d"],
        "",
    )
    .await;
    assert_eq!(missing.code, Some(66));
}
