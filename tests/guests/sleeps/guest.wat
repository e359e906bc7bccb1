  ;; Waits an hour inside the host.
  (import "wasi:clocks/monotonic-clock@0.2.6" "subscribe-duration" (func $subscribe (param i64) (result i32)))
  (import "wasi:io/poll@0.2.6" "[method]pollable.block" (func $block (param i32)))
  (func $execute (call $block (call $subscribe (i64.const 3600000000000))))
