  ;; Logs thirty thousand lines and then answers.
  (import "glovebox:plugin/control@0.1.0" "log" (func $log (param i32 i32 i32 i32 i32 i32)))
  (data (i32.const 1024) "infomuch ado")
  (func $execute (local $left i32)
    (local.set $left (i32.const 30000))
    (loop $again
      (call $log (i32.const 1024) (i32.const 4) (i32.const 1028) (i32.const 8) (i32.const 0) (i32.const 0))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left))))
