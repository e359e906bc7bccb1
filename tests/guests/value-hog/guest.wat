  ;; Sets the context value `big`: 900,000 bytes that are different at each attempt, because they begin with its id.
  (data (i32.const 1024) "big")
  (data (i32.const 1040) "\00\04\00\00\03\00\00\00\00\00\04\00\a2\bb\0d\00")
  (func $execute
    (drop (memory.grow (i32.const 32)))
    (memory.fill (i32.const 262144) (i32.const 120) (i32.const 900002))
    (memory.copy (i32.const 262145) (i32.load (i32.add (global.get $input) (i32.const 28))) (i32.const 26))
    (i32.store8 (i32.const 262144) (i32.const 34))
    (i32.store8 (i32.const 1162145) (i32.const 34))
    (i32.store (i32.const 40) (i32.const 1040))
    (i32.store (i32.const 44) (i32.const 1)))
