//! Variables in words.

use ftsh_syntax::ast::{Quoted, VariableUse, WordPart};

/// Returns the variables directly in parts of a word, quoted or not, without those in substitutes
/// and calls.
pub(super) fn in_parts(parts: &[WordPart]) -> impl Iterator<Item = &VariableUse> {
    parts.iter().flat_map(|part| {
        let (plain, quoted) = match part {
            WordPart::Variable(variable) => (Some(&**variable), &[][..]),
            WordPart::Double(pieces) => (None, &pieces[..]),
            WordPart::Bare(_) | WordPart::Escaped(_) | WordPart::Single(_) | WordPart::Call(_) => {
                (None, &[][..])
            }
        };
        let inside = quoted.iter().filter_map(|piece| match piece {
            Quoted::Variable(variable) => Some(&**variable),
            Quoted::Text(_) | Quoted::Call(_) => None,
        });
        plain.into_iter().chain(inside)
    })
}
