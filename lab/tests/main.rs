//! What the laboratory claims, at small size and with fixed seeds.

mod advise;
mod command_line;
mod delays;
mod occ;
mod outage;
mod pictures;
mod recovery;
mod support;
