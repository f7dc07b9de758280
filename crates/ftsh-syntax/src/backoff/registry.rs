//! The macro that turns the list of policies into types.

/// Declares [`PolicyKind`](super::Kind) and dispatches to the implementations.
///
/// Each line names a type, which is also a variant of `Kind`, and its module.
macro_rules! registry {
    ($($Policy:ident: $module:ident,)+) => {
        /// Names of the policies.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum PolicyKind {
            $(
                #[doc = concat!("`", stringify!($module), "`")]
                $Policy,
            )+
        }

        impl PolicyKind {
            /// Every policy, in the order of the reference.
            pub const ALL: [Self; [$(Self::$Policy),+].len()] = [$(Self::$Policy),+];

            /// Returns name, clauses, defaults and documentation of the policy.
            pub fn description(self) -> &'static Description {
                match self {
                    $(Self::$Policy => &<$module::$Policy as BackoffPolicy>::DESCRIPTION,)+
                }
            }

            /// Returns the state before the first delay.
            pub(super) fn start(self, parameters: Parameters) -> PolicyState {
                match self {
                    $(Self::$Policy => PolicyState::$Policy($module::$Policy::start(parameters)),)+
                }
            }

            /// Returns the bounds of every delay, without end.
            pub(super) fn bounds(self, parameters: Parameters) -> Box<dyn Iterator<Item = Bound>> {
                match self {
                    $(Self::$Policy => Box::new($module::$Policy::bounds(parameters)),)+
                }
            }

            /// Returns the delay that growth ends at.
            pub(super) fn cap(self, parameters: Parameters) -> Duration {
                match self {
                    $(Self::$Policy => $module::$Policy::cap(parameters),)+
                }
            }
        }

        /// State of a policy.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(super) enum PolicyState {
            $($Policy($module::$Policy),)+
        }

        impl PolicyState {
            /// Returns the next delay and advances the state.
            pub(super) fn next_delay(
                &mut self,
                parameters: Parameters,
                elapsed: Duration,
                rng: &mut impl Rng,
            ) -> Duration {
                match self {
                    $(Self::$Policy(state) => state.next_delay(parameters, elapsed, rng),)+
                }
            }
        }
    };
}

pub(super) use registry;
