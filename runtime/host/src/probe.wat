;; A component that does one thing: answer four bytes of text out of its own memory. `probe.wasm` is its binary form.
(component
  (core module $m
    (memory (export "memory") 1)
    (data (i32.const 0) "\08\00\00\00\04\00\00\00pong")
    (func (export "ping") (result i32) i32.const 0))
  (core instance $i (instantiate $m))
  (func (export "ping") (result string)
    (canon lift (core func $i "ping") (memory (core memory $i "memory")))))
