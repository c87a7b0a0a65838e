//! One end of a link, the replay buffer, and the times of reconnection.

use std::time::Duration;

use acp_relay::jsonrpc::Frame;
use acp_relay::link::{
    AttachError, Backoff, Exhausted, LinkState, Received, ReplayBuffer, Retention, WINDOW, WrongAck,
};

const NOW: Duration = Duration::from_secs(1);

fn frame(text: &'static str) -> Frame {
    Frame::from(text)
}

fn attached() -> LinkState {
    let mut link = LinkState::default();
    link.attach(1, 1, 1000).unwrap();
    link
}

#[test]
fn what_was_not_acknowledged_is_written_again_on_the_next_attachment() {
    let mut link = attached();
    for text in ["a", "b", "c"] {
        link.send(frame(text)).unwrap();
    }
    let written = |link: &mut LinkState| {
        let all = std::iter::from_fn(|| link.next_to_write());
        all.map(|(seq, ..)| seq).collect::<Vec<_>>()
    };
    assert_eq!(written(&mut link), [1, 2, 3]);
    link.acknowledged(1, 1, None).unwrap();
    link.detach();
    // Nothing is written without an attachment.
    assert_eq!(link.next_to_write(), None);
    link.send(frame("d")).unwrap();
    link.attach(2, 3, 1000).unwrap();
    assert_eq!(written(&mut link), [3, 4]);
    assert_eq!(link.sent().bytes(), 2 * frame("c").weight());
}

#[test]
fn old_attachments_are_refused_and_what_they_bring_late_is_dropped() {
    let mut link = attached();
    link.attach(3, 1, 0).unwrap();
    let behind = link.attach(3, 1, 0).unwrap_err();
    assert_eq!(behind, AttachError::Generation(3, 3));
    assert_eq!(link.receive(1, 1, frame("a")), Received::Stale);
    assert_eq!(link.receive(3, 1, frame("a")), Received::Next);
    assert_eq!(link.receive(3, 1, frame("a")), Received::Duplicate);
    assert_eq!(link.receive(3, 3, frame("c")), Received::Gap);
    // None of them is delivered.
    assert_eq!(link.take(|| NOW), Some(frame("a")));
    assert_eq!(link.take(|| NOW), None);
}

#[test]
fn an_attachment_that_does_not_fit_changes_nothing() {
    let mut link = attached();
    link.send(frame("a")).unwrap();
    link.next_to_write().unwrap();
    link.acknowledged(1, 1, None).unwrap();
    assert_eq!(link.attach(2, 1, 9), Err(AttachError::Behind(1)));
    assert_eq!(link.attach(2, 0, 9), Err(AttachError::Behind(0)));
    let ahead = WrongAck { ack: 2, last: 1 };
    assert_eq!(link.attach(2, 3, 9), Err(AttachError::Ahead(ahead)));
    assert_eq!(link.generation(), 1);
    // An acknowledgement of what was never sent ends the attachment; an old one is no fault.
    assert_eq!(link.acknowledged(1, 2, None), Err(ahead));
    assert_eq!(link.acknowledged(1, 0, None), Ok(()));
}

#[test]
fn the_window_and_the_limit_hold_messages_back() {
    let mut link = LinkState::default();
    let two = frame("ab").weight();
    link.attach(1, 1, two as u64 + 1).unwrap();
    for text in ["ab", "cd"] {
        assert!(link.has_room(0));
        link.send(frame(text)).unwrap();
    }
    assert!(!link.has_room(100));
    assert_eq!(link.next_to_write().unwrap().0, 1);
    assert_eq!(link.next_to_write(), None);
    link.acknowledged(1, 1, None).unwrap();
    assert_eq!(link.next_to_write().unwrap().0, 2);
    // Without an attachment it is the limit that counts.
    link.detach();
    assert!(link.has_room(two + 1) && !link.has_room(two));
    // A message larger than the window is sent alone.
    let mut buffer = ReplayBuffer::default();
    buffer.push(frame("larger")).unwrap();
    assert_eq!(buffer.next(1).unwrap().0, 1);
}

#[test]
fn what_was_not_handled_comes_again() {
    let mut link = attached();
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(link.receive(1, seq, frame(text)), Received::Next);
    }
    assert_eq!(link.take(|| NOW), Some(frame("a")));
    assert_eq!(link.acknowledge(), 1);
    link.detach();
    assert_eq!(link.take(|| NOW), None);
    assert_eq!(link.expected(), 2);
    // A peer that does not keep to the window is stopped.
    link.attach(2, 1, 100).unwrap();
    let large = Frame::new(vec![b' '; WINDOW as usize + 1]);
    assert_eq!(link.receive(2, 2, large), Received::Next);
    assert_eq!(link.receive(2, 3, frame("d")), Received::Flood);
}

#[test]
fn messages_without_bytes_fill_the_window() {
    let most = usize::try_from(WINDOW).unwrap() / frame("").weight();
    let mut link = LinkState::default();
    link.attach(1, 1, WINDOW).unwrap();
    let mut sent = 0;
    while link.has_room(0) {
        link.send(frame("")).unwrap();
        sent += 1;
    }
    assert_eq!(sent, most);
    let received = (1..).map(|seq| link.receive(1, seq, frame("")));
    assert_eq!(
        received.take_while(|one| *one == Received::Next).count(),
        most + 1
    );
    // Without an attachment they fill the memory that a link may take.
    link.detach();
    assert!(!link.has_room(most * frame("").weight()));
}

#[test]
fn acknowledgements_are_due_after_some_time_messages_or_bytes() {
    let mut link = attached();
    let handle = |link: &mut LinkState, seq, bytes| {
        let received = link.receive(1, seq, Frame::new(vec![b' '; bytes]));
        assert_eq!(received, Received::Next);
        // What is received and not handled is not acknowledged.
        let before = link.ack_due();
        link.take(|| NOW).unwrap();
        before
    };
    assert_eq!(handle(&mut link, 1, 10), None);
    assert_eq!(link.ack_due(), Some(NOW + Duration::from_millis(50)));
    handle(&mut link, 2, 64 << 10);
    assert_eq!(link.ack_due(), Some(NOW));
    assert_eq!(link.acknowledge(), 2);
    assert_eq!(link.ack_due(), None);
    for seq in 3..35 {
        handle(&mut link, seq, 1);
    }
    assert_eq!(link.ack_due(), Some(NOW));
    // One that is written with a message needs none of its own.
    link.send(frame("a")).unwrap();
    assert_eq!(link.next_to_write().unwrap().1, 34);
    assert_eq!(link.ack_due(), None);
}

#[test]
fn the_last_number_is_not_used() {
    let mut link = LinkState::with_numbers(u64::MAX - 1);
    link.attach(1, u64::MAX - 1, 100).unwrap();
    assert_eq!(link.send(frame("a")), Ok(u64::MAX - 1));
    assert_eq!(link.send(frame("b")), Err(Exhausted));
    let last = link.receive(1, u64::MAX - 1, frame("a"));
    assert_eq!(last, Received::Next);
    link.take(|| NOW).unwrap();
    assert_eq!(link.expected(), u64::MAX);
    assert_eq!(link.next_to_write().unwrap().1, u64::MAX - 1);
}

#[test]
fn attempts_come_at_once_and_then_more_and_more_rarely() {
    let mut backoff = Backoff::default();
    let longest: Vec<u128> = (0..8)
        .map(|_| backoff.next(1.0, None).as_millis())
        .collect();
    assert_eq!(longest, [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
    assert_eq!(backoff.next(0.0, None), Duration::ZERO);
    let asked = Duration::from_secs(60);
    assert_eq!(backoff.next(0.5, Some(asked)), asked);
    backoff.reset();
    assert_eq!(backoff.next(1.0, None).as_millis(), 250);
    // No peer has the relay ask without a pause, or wait for ever.
    for (asked, kept) in [(0, 100), (1, 100), (60_001, 60_000), (u64::MAX, 60_000)] {
        let mut backoff = Backoff::default();
        let wait = backoff.next(0.0, Some(Duration::from_millis(asked)));
        assert_eq!(wait.as_millis(), kept, "{asked}");
    }
}

#[test]
fn an_agent_is_kept_until_its_turn_has_ended_and_some_time_more() {
    let [lost, minutes, day] = [1000, 600, 86_400].map(Duration::from_secs);
    let keeps = Retention {
        idle: minutes,
        limit: day,
    };
    assert_eq!(keeps.until(lost, Some(Duration::ZERO)), lost + minutes);
    let ended = lost + Duration::from_secs(3600);
    assert_eq!(keeps.until(lost, Some(ended)), ended + minutes);
    assert_eq!(keeps.until(lost, None), lost + day);
    assert_eq!(keeps.until(lost, Some(lost + day)), lost + day);
}
