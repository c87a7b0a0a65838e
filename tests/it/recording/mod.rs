//! Recordings: the format, the recorder, redaction, and the tools that read them.

mod crash;
mod format;
mod full;
mod home;
mod leaks;
mod names;
mod pairs;
mod parts;
mod pieces;
mod planted;
mod prune;
mod recorder;
mod secrets;
mod stage;
mod tools;
mod vectors;
mod verify;
