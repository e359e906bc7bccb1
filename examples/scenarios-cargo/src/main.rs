//! Prints the slug of a title.

fn main() {
    let title = std::env::args().nth(1).unwrap_or_default();
    println!("{}", title.to_lowercase());
}
