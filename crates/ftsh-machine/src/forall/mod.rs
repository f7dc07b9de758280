//! The branches of `forall`.

pub(crate) mod branches;
