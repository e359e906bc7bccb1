//! Log lines of the attempt, written to the host's record of it: `log::info("built", &[("crate", "core")])`.
//!
//! Where a line ends up and how many are kept is the host's business.

use crate::bindings::glovebox::plugin::control;

macro_rules! levels {
    ($($level:ident)*) => {$(
        #[doc = concat!("Logs a message and its fields at level `", stringify!($level), "`.")]
        pub fn $level(message: &str, fields: &[(&str, &str)]) {
            write(stringify!($level), message, fields);
        }
    )*};
}

levels! { trace debug info warn error }

fn write(level: &str, message: &str, fields: &[(&str, &str)]) {
    let fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    control::log(level, message, &fields);
}
