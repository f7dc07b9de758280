//! Slugs: the names of the kinds of errors, warnings and failures, as in `error[subshell]`.
//!
//! A slug is a row of [`Slug`] and a file in the folder `slugs` of the crate with the same name. The file
//! has the meaning, a program that causes the message, advice, and a program that follows the
//! advice. `tests/slugs.rs` runs the programs.

mod explanation;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use explanation::Explanation;

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The script cannot run.
    Error,
    /// The script can run, and probably does not do what was meant.
    Warning,
    /// The script ran and failed. The slug is the kind of the failure, or a finer name.
    Failure,
}

impl Severity {
    /// Returns the word that begins a message.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

/// Defines [`Slug`] from its rows: variants with their names, by severity.
macro_rules! slugs {
    ($($severity:ident { $($slug:ident $name:literal,)* })*) => {
        /// Name of a kind of error, warning or failure. Messages that differ only in the names of
        /// variables, words and programs share a slug. Slugs are stable between versions.
        #[allow(missing_docs, reason = "the names say it")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        // Data name a slug, since rows move.
        #[serde(into = "&'static str", try_from = "String")]
        pub enum Slug {
            $($($slug,)*)*
        }

        impl Slug {
            /// All slugs, in the order of the index.
            pub const ALL: &'static [Self] = &[$($(Self::$slug,)*)*];

            /// Returns the name, as `--explain` takes it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$slug => $name,)*)*
                }
            }

            /// Returns the text of the explanation, as Markdown.
            pub const fn page(self) -> &'static str {
                match self {
                    $($(Self::$slug => include_str!(concat!("../../slugs/", $name, ".md")),)*)*
                }
            }

            /// Returns the severity of messages with the slug.
            pub const fn severity(self) -> Severity {
                match self {
                    $($(Self::$slug => Severity::$severity,)*)*
                }
            }
        }
    };
}

slugs! {
    Error {
        AndOr "and-or",
        ArgumentCount "argument-count",
        ArgumentDeclaration "argument-declaration",
        Arithmetic "arithmetic",
        Array "array",
        AssignmentBlank "assignment-blank",
        Background "background",
        BraceList "brace-list",
        BranchFile "branch-file",
        CallAsCommand "call-as-command",
        CaseForm "case-form",
        ChainedComparison "chained-comparison",
        ChannelName "channel-name",
        ChannelWithoutRule "channel-without-rule",
        CloseDescriptor "close-descriptor",
        CommandAsCondition "command-as-condition",
        CommandSubstitution "command-substitution",
        CompoundAssignment "compound-assignment",
        ConflictingClauses "conflicting-clauses",
        ContinueInForany "continue-in-forany",
        Descriptor "descriptor",
        DollarAssignment "dollar-assignment",
        DuplicateClause "duplicate-clause",
        DuplicateFunction "duplicate-function",
        EngineArgument "engine-argument",
        ExecInAtomic "exec-in-atomic",
        ExecRedirection "exec-redirection",
        FunctionHead "function-head",
        FunctionOutput "function-output",
        HereDocumentEnd "here-document-end",
        HereDocumentInPipeline "here-document-in-pipeline",
        IndentedHereDocument "indented-here-document",
        JournalFile "journal-file",
        KeepInView "keep-in-view",
        LeavesBranch "leaves-branch",
        LeavesFinally "leaves-finally",
        ListInText "list-in-text",
        LocalNames "local-names",
        LockFile "lock-file",
        LoopHead "loop-head",
        MisplacedClause "misplaced-clause",
        MisplacedKeyword "misplaced-keyword",
        MisplacedSymbol "misplaced-symbol",
        MissingCommand "missing-command",
        MissingDashes "missing-dashes",
        MissingEnd "missing-end",
        MissingOperand "missing-operand",
        MissingPercent "missing-percent",
        MissingUnit "missing-unit",
        MissingValue "missing-value",
        NestedQuotes "nested-quotes",
        NotADuration "not-a-duration",
        NotANumber "not-a-number",
        NotASize "not-a-size",
        NotAlone "not-alone",
        NotRun "not-run",
        NotText "not-text",
        OptionConflict "option-conflict",
        OptionValue "option-value",
        OtherShell "other-shell",
        OutOfRange "out-of-range",
        PartOrder "part-order",
        PipelineStage "pipeline-stage",
        PrefixHead "prefix-head",
        PrefixInput "prefix-input",
        ProcessSubstitution "process-substitution",
        RangeStep "range-step",
        ReadOption "read-option",
        RegularExpression "regular-expression",
        ScriptFile "script-file",
        SpecialVariable "special-variable",
        StrayEnd "stray-end",
        StrayJump "stray-jump",
        StrayLocal "stray-local",
        StrayPart "stray-part",
        StructureAsCondition "structure-as-condition",
        Subshell "subshell",
        System "system",
        TooLarge "too-large",
        TrailingBackslash "trailing-backslash",
        UnclosedBrace "unclosed-brace",
        UnclosedHereDocument "unclosed-here-document",
        UnclosedString "unclosed-string",
        Unexpected "unexpected",
        UnknownChannel "unknown-channel",
        UnknownClause "unknown-clause",
        UnknownFunction "unknown-function",
        UnknownKind "unknown-kind",
        UnknownOperator "unknown-operator",
        UnknownOption "unknown-option",
        UnknownPolicy "unknown-policy",
        UnknownSignal "unknown-signal",
        UnknownSlug "unknown-slug",
        UnknownStructure "unknown-structure",
        UnknownSubstitution "unknown-substitution",
        UnknownUnit "unknown-unit",
        UsedFile "used-file",
        VariableName "variable-name",
        ZeroDuration "zero-duration",
    }
    Warning {
        AppendInAtomic "append-in-atomic",
        BraceWord "brace-word",
        CallArguments "call-arguments",
        CallInWord "call-in-word",
        ChainedPower "chained-power",
        EchoOption "echo-option",
        EmptyAssignment "empty-assignment",
        EmptyRange "empty-range",
        FieldSeparator "field-separator",
        FileInAtomic "file-in-atomic",
        Escape "escape",
        ForgottenFailure "forgotten-failure",
        IndexInText "index-in-text",
        InvalidFilter "invalid-filter",
        LateHedge "late-hedge",
        LeavesAttempts "leaves-attempts",
        LimitAfterPolicy "limit-after-policy",
        ListBesideText "list-beside-text",
        ListLength "list-length",
        LongerLimit "longer-limit",
        LoopInput "loop-input",
        LostAssignment "lost-assignment",
        MissingProgram "missing-program",
        MultipliedAttempts "multiplied-attempts",
        NameOrCommand "name-or-command",
        NestedChannel "nested-channel",
        NotAPause "not-a-pause",
        OneLine "one-line",
        OutputAsWord "output-as-word",
        PatternWord "pattern-word",
        QuotedGroup "quoted-group",
        RepeatedChange "repeated-change",
        RepeatedOutput "repeated-output",
        ShortLimit "short-limit",
        SingleAttempt "single-attempt",
        SpecialCharacter "special-character",
        TextArithmetic "text-arithmetic",
        TextOperand "text-operand",
        TooFewWords "too-few-words",
        UncheckedArgument "unchecked-argument",
        UnknownEngine "unknown-engine",
        UnlimitedDeferral "unlimited-deferral",
        UnquotedValue "unquoted-value",
        Unreachable "unreachable",
        UnusedBudget "unused-budget",
        UnusedChannel "unused-channel",
        UnusedFunction "unused-function",
        ValueInCode "value-in-code",
        VersionAsNumber "version-as-number",
        ZeroEvery "zero-every",
    }
    Failure {
        BuiltinArguments "builtin-arguments",
        ChannelOrder "channel-order",
        Commit "commit",
        Directory "directory",
        DivisionByZero "division-by-zero",
        EmptyCommand "empty-command",
        EmptyInterval "empty-interval",
        EmptySeparator "empty-separator",
        EndOfInput "end-of-input",
        Filter "filter",
        Format "format",
        FunctionArgument "function-argument",
        Input "input",
        Json "json",
        LargeValue "large-value",
        LostDirectory "lost-directory",
        ManyBranches "many-branches",
        MissingResult "missing-result",
        NegativePower "negative-power",
        NoAlternative "no-alternative",
        NoFile "no-file",
        NoGroup "no-group",
        NoMatch "no-match",
        NoMemory "no-memory",
        NotABoolean "not-a-boolean",
        NotAList "not-a-list",
        NotAName "not-a-name",
        NotExecutable "not-executable",
        OnceFile "once-file",
        Output "output",
        Overflow "overflow",
        Recursion "recursion",
        SourcedError "sourced-error",
        SourcedFile "sourced-file",
        UndefinedResult "undefined-result",
        UnknownUser "unknown-user",
        UnsetVariable "unset-variable",
        WordCount "word-count",
        ZeroStep "zero-step",
    }
    Failure {
        Exit "exit",
        Signal "signal",
        Timeout "timeout",
        Stalled "stalled",
        Memory "memory",
        Conflict "conflict",
        Companion "companion",
        Canceled "canceled",
        NotFound "notfound",
        Spawn "spawn",
        Redirect "redirect",
        Expression "expression",
        Failure "failure",
        Giveup "giveup",
        Deferred "deferred",
        Refused "refused",
        Lost "lost",
        Engine "engine",
        Internal "internal",
        Usage "usage",
        Io "io",
    }
}

impl Slug {
    /// Names of the kinds of failure.
    pub const KINDS: [&'static str; 21] = {
        let mut names = [""; 21];
        let mut at = 0;
        // The kinds are the last rows, after the finer slugs of failures.
        while at < names.len() {
            names[at] = Self::ALL[Self::ALL.len() - names.len() + at].name();
            at += 1;
        }
        names
    };

    /// Returns the slug of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|slug| slug.name() == name)
    }
}

impl From<Slug> for &'static str {
    fn from(slug: Slug) -> Self {
        slug.name()
    }
}

impl TryFrom<String> for Slug {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name).ok_or(name)
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_short_and_unique() {
        let names: BTreeSet<_> = Slug::ALL.iter().map(|slug| slug.name()).collect();
        assert_eq!(names.len(), Slug::ALL.len());
        for name in names {
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(name.len() <= 25 && name.chars().all(is_plain), "{name}");
            assert_eq!(Slug::named(name).map(Slug::name), Some(name));
        }
    }
}
