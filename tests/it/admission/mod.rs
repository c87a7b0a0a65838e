//! The door: who is let in where, with what, for how long, and what the others are told.

mod certificates;
mod files;
mod gate;
mod matrix;
mod owners;
mod routes;
mod served;
