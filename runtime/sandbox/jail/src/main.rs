//! The jail helper: builds the walls it is told to, then runs commands behind them as their PID 1.

fn main() {}
