  ;; Asks five thousand times for what it does not get.
  (import "glovebox:plugin/control@0.1.0" "put-artifact" (func $put (param i32 i32 i32 i32 i32 i32 i32)))
  (data (i32.const 1024) "status.json")
  (func $execute (local $left i32)
    (local.set $left (i32.const 5000))
    (loop $again
      (call $put (i32.const 1024) (i32.const 11) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 128))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left))))
