  ;; Divides by zero without a word.
  (func $execute (drop (i32.div_u (i32.const 1) (i32.const 0))))
