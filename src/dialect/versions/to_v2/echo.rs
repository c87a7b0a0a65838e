//! The agent's repetition of the user's message, which the client has already been shown.

use std::collections::VecDeque;

use crate::dialect::text;
use crate::dialect::tree::Node;
use crate::dialect::versions::json::{text as text_of, value};

/// The longest prompt whose repetition is recognised, in bytes.
const MAX_PROMPT: usize = 1 << 20;

/// What is left of a prompt that the agent may repeat, in one or more parts.
#[derive(Debug, Default)]
pub(super) struct Echo(VecDeque<Part>);

#[derive(Debug)]
enum Part {
    /// The text of adjacent plain blocks, from that byte on.
    Text(String, usize),
    /// Another block.
    Block(Vec<u8>),
}

impl Echo {
    /// What a repetition of that content is made of.
    pub(super) fn of(content: &Node<'_>) -> Self {
        let mut parts = VecDeque::new();
        if content.json().len() > MAX_PROMPT {
            return Self(parts);
        }
        for block in content.clone().items().into_iter().flatten() {
            match (plain_text(block), parts.back_mut()) {
                (Some(more), Some(Part::Text(text, _))) => text.push_str(&more),
                (Some(text), _) => parts.push_back(Part::Text(text, 0)),
                (None, _) => parts.push_back(Part::Block(block.json().into_owned())),
            }
        }
        Self(parts)
    }

    /// Whether that block is the next part of the repetition.
    pub(super) fn takes(&mut self, block: &Node<'_>) -> bool {
        let Some(next) = self.0.front_mut() else {
            return false;
        };
        match (next, plain_text(block)) {
            (Part::Text(whole, at), Some(text)) => {
                if !whole[*at..].starts_with(&text) {
                    return false;
                }
                *at += text.len();
                if *at == whole.len() {
                    self.0.pop_front();
                }
            }
            (Part::Block(whole), None) if text::same(whole, &block.json()) => {
                self.0.pop_front();
            }
            _ => return false,
        }
        true
    }
}

/// The text of a block without annotations.
fn plain_text(block: &Node<'_>) -> Option<String> {
    let is_text = text_of(block, "type").is_some_and(|kind| kind == "text");
    (is_text && value(block, "annotations").is_none())
        .then(|| text_of(block, "text"))
        .flatten()
}
