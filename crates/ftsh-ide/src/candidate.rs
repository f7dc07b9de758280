//! Candidates of completion.

/// Text that may come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionCandidate {
    /// Text in the list of candidates.
    pub display: String,
    /// Text inserted into the line.
    pub replacement: String,
    /// Text after a single candidate.
    pub ending: &'static str,
}

impl CompletionCandidate {
    /// Creates the candidate for a word, with a blank after it.
    pub fn word(word: impl Into<String>) -> Self {
        let word = word.into();
        Self { display: word.clone(), replacement: word, ending: " " }
    }
}
