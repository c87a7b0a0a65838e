//! The replay buffer does what a map from numbers to messages does, whatever is asked of it.

use std::collections::BTreeMap;

use acp_relay::link::{Exhausted, ReplayBuffer, Size, WrongAck};
use proptest::prelude::*;

/// A message: which one it is, and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Message(usize, usize);

impl Size for Message {
    fn size(&self) -> usize {
        self.1
    }
}

/// Numbers are given as distances from the one before the first.
#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Append(usize),
    Next(u64),
    NextRef(u64),
    Rewind,
    RewindTo(u64),
    DropOldest,
    Acknowledge(u64),
    TakeUnwritten,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_usize..9).prop_map(Step::Push),
        4 => (0_usize..9).prop_map(Step::Append),
        4 => (0_u64..40).prop_map(Step::Next),
        4 => (0_u64..40).prop_map(Step::NextRef),
        1 => Just(Step::Rewind),
        2 => (0_u64..25).prop_map(Step::RewindTo),
        2 => Just(Step::DropOldest),
        2 => (0_u64..25).prop_map(Step::Acknowledge),
        1 => Just(Step::TakeUnwritten),
    ];
    proptest::collection::vec(step, 1..80)
}

/// All messages that are kept by their numbers.
struct Model {
    kept: BTreeMap<u64, Message>,
    /// The number to write next, and the number for the next message.
    position: u64,
    next: u64,
}

impl Model {
    fn first(&self) -> u64 {
        self.kept.keys().next().copied().unwrap_or(self.next)
    }

    fn written_since(&self, number: u64) -> Vec<Message> {
        let written = self.kept.range(number..self.position);
        written.map(|(_, message)| message.clone()).collect()
    }

    fn push(&mut self, message: Message) -> Result<u64, Exhausted> {
        let number = self.next;
        if number == u64::MAX {
            return Err(Exhausted);
        }
        self.kept.insert(number, message);
        self.next += 1;
        Ok(number)
    }

    fn next(&mut self, window: u64) -> Option<(u64, Message)> {
        let (number, message) = (self.position, self.kept.get(&self.position)?.clone());
        let written = self.written_since(0);
        if !written.is_empty() && (size(&written) + message.1) as u64 > window {
            return None;
        }
        self.position += 1;
        Some((number, message))
    }

    fn rewind_to(&mut self, number: u64) -> Option<Vec<Message>> {
        if !(self.first()..=self.position).contains(&number) {
            return None;
        }
        let again = self.written_since(number);
        self.position = number;
        Some(again)
    }

    fn drop_oldest(&mut self) -> Option<usize> {
        let first = self.first();
        let oldest = (first < self.position).then(|| self.kept.remove(&first));
        oldest.flatten().map(|message| message.1)
    }

    fn acknowledge(&mut self, ack: u64) -> Result<(), WrongAck> {
        let last = self.next - 1;
        if ack > last {
            return Err(WrongAck { ack, last });
        }
        self.kept.retain(|number, _| *number > ack);
        self.position = self.position.max(ack + 1);
        Ok(())
    }

    fn take_unwritten(&mut self) -> Vec<Message> {
        self.next = self.position;
        self.kept.split_off(&self.position).into_values().collect()
    }
}

fn size(messages: &[Message]) -> usize {
    messages.iter().map(|message| message.1).sum()
}

proptest! {
    #[test]
    fn it_agrees_with_a_map(
        start in prop_oneof![3 => Just(1), 1 => Just(u64::MAX - 12)],
        steps in steps(),
    ) {
        let mut buffer = ReplayBuffer::beginning_at(start);
        let mut model = Model { kept: BTreeMap::new(), position: start, next: start };
        let number = |distance: u64| (start - 1).saturating_add(distance);
        for (which, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(size) if model.next < u64::MAX => {
                    buffer.append(Message(which, size));
                    model.push(Message(which, size)).unwrap();
                }
                Step::Push(size) | Step::Append(size) => {
                    let number = model.push(Message(which, size));
                    prop_assert_eq!(buffer.push(Message(which, size)), number);
                }
                Step::Next(window) => prop_assert_eq!(buffer.next(window), model.next(window)),
                Step::NextRef(window) => {
                    let next = buffer.next_ref(window).map(|(number, one)| (number, one.clone()));
                    prop_assert_eq!(next, model.next(window));
                }
                Step::Rewind => {
                    let again = model.rewind_to(model.first()).unwrap();
                    prop_assert_eq!(buffer.rewind(), again.len());
                }
                Step::RewindTo(distance) => {
                    let to = number(distance);
                    let again = model.rewind_to(to).map(|again| size(&again));
                    prop_assert_eq!(buffer.rewind_to(to), again);
                }
                Step::DropOldest => prop_assert_eq!(buffer.drop_oldest(), model.drop_oldest()),
                Step::Acknowledge(distance) => {
                    let ack = number(distance);
                    prop_assert_eq!(buffer.acknowledge(ack), model.acknowledge(ack));
                }
                Step::TakeUnwritten => {
                    let taken: Vec<Message> = buffer.take_unwritten().collect();
                    prop_assert_eq!(taken, model.take_unwritten());
                }
            }
            let kept: Vec<Message> = model.kept.values().cloned().collect();
            let written: Vec<Message> = buffer.written().cloned().collect();
            prop_assert_eq!(written, model.written_since(0));
            prop_assert_eq!(buffer.has_unwritten(), model.position < model.next);
            let numbers = (buffer.first(), buffer.position(), buffer.next_number());
            prop_assert_eq!(numbers, (model.first(), model.position, model.next));
            let sizes = (buffer.len(), buffer.is_empty(), buffer.bytes());
            prop_assert_eq!(sizes, (kept.len(), kept.is_empty(), size(&kept)));
        }
    }
}
