  ;; Addresses: 16 to 28 is the answer (all zero: allowed), 1024 and up is the policy's.
  (memory (export "memory") 2)
  (global $heap (mut i32) (i32.const 65536))
  ;; The question with its length.
  (global $json (mut i32) (i32.const 0))
  (global $json_length (mut i32) (i32.const 0))

  ;; Gives memory out and never takes it back.
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
      (then (drop (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 1))))))
    (local.get $at))

  (func (export "glovebox:plugin/policy-rules@0.1.0#judge-call") (param i32 i32) (result i32)
    (global.set $json (local.get 0))
    (global.set $json_length (local.get 1))
    (call $judge_call)
    (i32.const 16))

  (func (export "glovebox:plugin/policy-rules@0.1.0#judge-edge") (param i32 i32) (result i32)
    (global.set $json (local.get 0))
    (global.set $json_length (local.get 1))
    (call $judge_edge)
    (i32.const 16))

  ;; Refuses the action with a reason.
  (func $refuse (param $at i32) (param $length i32)
    (i32.store8 (i32.const 16) (i32.const 1))
    (i32.store (i32.const 20) (local.get $at))
    (i32.store (i32.const 24) (local.get $length)))

  ;; Returns 1 if the question contains a text.
  (func $asks (param $text i32) (param $length i32) (result i32)
    (local $from i32) (local $at i32)
    (block $none
      (loop $start
        (br_if $none (i32.gt_u (i32.add (local.get $from) (local.get $length)) (global.get $json_length)))
        (local.set $at (i32.const 0))
        (block $differs
          (loop $compare
            (if (i32.eq (local.get $at) (local.get $length)) (then (return (i32.const 1))))
            (br_if $differs (i32.ne
              (i32.load8_u (i32.add (global.get $json) (i32.add (local.get $from) (local.get $at))))
              (i32.load8_u (i32.add (local.get $text) (local.get $at)))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br $compare)))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (br $start)))
    (i32.const 0))
