//! What the laboratory claims, at small size and with fixed seeds.

mod advise;
mod blackhole;
mod buffer;
mod cap;
mod channels;
mod cluster;
mod command_line;
mod delays;
mod ethernet;
mod limits;
mod live;
mod occ;
mod outage;
mod overload;
mod pictures;
mod readme;
mod recovery;
mod rehearsal_advice;
mod rehearsal_bounds;
mod rehearsal_words;
mod rehearse;
mod scripts;
mod support;
