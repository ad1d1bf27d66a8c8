//! The quality bench: labelled cases through a real model, in all orders of their options.
#![expect(clippy::print_stdout, reason = "a report is its output")]

mod cases;
mod forms;
mod random;
mod record;
mod slots;
mod themes;

fn main() {
    for case in cases::generated() {
        println!("{}", record::line(&case));
    }
}
