//! Recordings: the format, the recorder, what is kept out of them, and the tools that read them.

mod format;
mod recorder;
mod stage;
mod verify;
