//! Lines in the attempt's log: `log::info("built", &[("crate", "core")])`.
//!
//! The host decides where lines are stored, and how many (`log_lines`).

use crate::imports::control;

macro_rules! levels {
    ($($level:ident)*) => {$(
        #[doc = concat!("Logs a message and its fields at level `", stringify!($level), "`.")]
        pub fn $level(message: &str, fields: &[(&str, &str)]) {
            let fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            control::log(stringify!($level), message, &fields);
        }
    )*};
}

levels! { trace debug info warn error }
