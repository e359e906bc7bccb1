  ;; Does what a Rust panic does: a text on standard error, then a trap.
  (import "wasi:cli/stderr@0.2.6" "get-stderr" (func $stderr (result i32)))
  (import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush"
    (func $write (param i32 i32 i32 i32)))
  (data (i32.const 1024) "thread 'main' panicked at src/lib.rs:7:9:\nthe \1b[31mroof is on fire\n")
  (func $execute
    (call $write (call $stderr) (i32.const 1024) (i32.const 67) (i32.const 128))
    (unreachable))
