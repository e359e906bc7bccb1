  ;; Hands the host a log line of seventeen mebibytes.
  (import "glovebox:plugin/control@0.1.0" "log" (func $log (param i32 i32 i32 i32 i32 i32)))
  (data (i32.const 1024) "info")
  (func $execute
    (drop (memory.grow (i32.const 400)))
    (call $log (i32.const 1024) (i32.const 4) (i32.const 131072) (i32.const 17825792) (i32.const 0) (i32.const 0)))
