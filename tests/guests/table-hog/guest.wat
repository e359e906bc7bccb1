  ;; Grows a table without end.
  (table $functions 1 funcref)
  (func $execute
    (loop $again
      (drop (table.grow $functions (ref.null func) (i32.const 1000)))
      (br $again)))
