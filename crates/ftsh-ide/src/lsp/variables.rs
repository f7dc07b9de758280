//! Variables in words.

use ftsh_syntax::ast::{Part, Quoted, Variable};

/// Returns the variables directly in parts of a word, quoted or not, without those in substitutes.
pub fn in_parts(parts: &[Part]) -> impl Iterator<Item = &Variable> {
    parts.iter().flat_map(|part| {
        let (plain, quoted) = match part {
            Part::Variable(variable) => (Some(&**variable), &[][..]),
            Part::Double(pieces) => (None, &pieces[..]),
            Part::Bare(_) | Part::Escaped(_) | Part::Single(_) => (None, &[][..]),
        };
        let inside = quoted.iter().filter_map(|piece| match piece {
            Quoted::Variable(variable) => Some(&**variable),
            Quoted::Text(_) => None,
        });
        plain.into_iter().chain(inside)
    })
}
