  ;; Calls itself without end.
  (func $execute (call $execute))
