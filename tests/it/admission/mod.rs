//! Admission: which clients are admitted where, with which credentials, for how long.

mod certificates;
mod files;
mod gate;
mod matrix;
mod owners;
mod routes;
mod served;
