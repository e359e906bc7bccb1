  ;; Writes four mebibytes to standard error and then answers.
  (import "wasi:cli/stderr@0.2.6" "get-stderr" (func $stderr (result i32)))
  (import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush"
    (func $write (param i32 i32 i32 i32)))
  (func $execute (local $stream i32) (local $left i32)
    (local.set $stream (call $stderr))
    (local.set $left (i32.const 1024))
    (loop $again
      (call $write (local.get $stream) (i32.const 1024) (i32.const 4096) (i32.const 128))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left))))
