//! ACP over HTTP, as seen from the network: what is answered, which messages come on which stream,
//! and what happens when clients vanish.

mod bodies;
mod codes;
mod elephant;
mod endings;
mod site;
mod streams;
