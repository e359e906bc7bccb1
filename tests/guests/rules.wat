  ;; Addresses: 16 is a list of findings (empty), 32 to 48 is no other graph, 1024 and up is the component's.
  (memory (export "memory") 2)
  (global $heap (mut i32) (i32.const 65536))

  ;; Gives memory out and never takes it back.
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
      (then (drop (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 1))))))
    (local.get $at))

  (func (export "glovebox:plugin/graph-rules@0.1.0#lint") (param $graph i32) (param $length i32) (result i32)
    (call $lint (local.get $graph) (local.get $length))
    (i32.const 16))

  (func (export "glovebox:plugin/graph-rules@0.1.0#transform") (param i32 i32) (result i32)
    (call $transform)
    (i32.const 32))

  ;; Says that there are so many findings at 1024, 68 bytes each.
  (func $findings (param $count i32)
    (i32.store (i32.const 16) (i32.const 1024))
    (i32.store (i32.const 20) (local.get $count)))

  ;; Puts a text into the record at 1024: 0 the rule, 8 the severity, 16 the message.
  (func $text (param $field i32) (param $at i32) (param $length i32)
    (i32.store (i32.add (i32.const 1024) (local.get $field)) (local.get $at))
    (i32.store (i32.add (i32.const 1028) (local.get $field)) (local.get $length)))

  ;; Says which node the finding is about.
  (func $node (param $at i32) (param $length i32)
    (i32.store8 (i32.const 1048) (i32.const 1))
    (i32.store (i32.const 1052) (local.get $at))
    (i32.store (i32.const 1056) (local.get $length)))
