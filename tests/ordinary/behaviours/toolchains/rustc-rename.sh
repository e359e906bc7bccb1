# why: Rust programs rename folders and start threads
# source: https://doc.rust-lang.org/std/fs/fn.rename.html
# needs: rustc cc
# setting: workspace.files = "copy"
printf 'fn main() { std::fs::rename("src", "source").unwrap(); std::thread::spawn(|| ()).join().unwrap(); }\n' > "$TMPDIR/a.rs"
rustc -o "$TMPDIR/a" "$TMPDIR/a.rs"
"$TMPDIR/a"
test -f source/app.py
