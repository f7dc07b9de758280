//! What Tab offers.

/// Something that may come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// As it is listed.
    pub display: String,
    /// As it is put into the line.
    pub replacement: String,
    /// What follows if it is the only one.
    pub ending: &'static str,
}

impl Candidate {
    /// A word, and then a blank.
    pub fn word(word: impl Into<String>) -> Self {
        let word = word.into();
        Self { display: word.clone(), replacement: word, ending: " " }
    }
}
