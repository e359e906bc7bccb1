  ;; Does to the file system what the node's attributes say, with the raw calls a C library would make, and notes the answers.
  ;;
  ;; Each attribute is a step: the first letter of its name says what to do, the next ones are digits (flags), its value is a
  ;; path or text. The notes get one line for each: `.` and what was read, or `A` + the number of an `error-code`, or `!` and
  ;; the code of an error of `glovebox:plugin/files`, or `?` when there is no open descriptor.
  (import "wasi:filesystem/preopens@0.2.6" "get-directories" (func $preopens (param i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.read-via-stream" (func $read_via_stream (param i32 i64 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.write-via-stream" (func $write_via_stream (param i32 i64 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.append-via-stream" (func $append_via_stream (param i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.advise" (func $advise (param i32 i64 i64 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.sync-data" (func $sync_data (param i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.get-flags" (func $get_flags (param i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.get-type" (func $get_type (param i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.set-size" (func $set_size (param i32 i64 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.set-times" (func $set_times
    (param i32 i32 i64 i32 i32 i64 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.read" (func $read (param i32 i64 i64 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.write" (func $write (param i32 i32 i32 i64 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.read-directory" (func $read_directory (param i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.sync" (func $sync (param i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.create-directory-at" (func $create_directory_at
    (param i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.stat" (func $stat (param i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.stat-at" (func $stat_at (param i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.set-times-at" (func $set_times_at
    (param i32 i32 i32 i32 i32 i64 i32 i32 i64 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.link-at" (func $link_at
    (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.open-at" (func $open_at (param i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.readlink-at" (func $readlink_at (param i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.remove-directory-at" (func $remove_directory_at
    (param i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.rename-at" (func $rename_at
    (param i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.symlink-at" (func $symlink_at
    (param i32 i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.unlink-file-at" (func $unlink_file_at
    (param i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.is-same-object" (func $is_same_object
    (param i32 i32) (result i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.metadata-hash" (func $metadata_hash (param i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.metadata-hash-at" (func $metadata_hash_at
    (param i32 i32 i32 i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]directory-entry-stream.read-directory-entry" (func $read_directory_entry
    (param i32 i32)))
  (import "wasi:filesystem/types@0.2.6" "[resource-drop]descriptor" (func $drop_descriptor (param i32)))
  (import "wasi:filesystem/types@0.2.6" "[resource-drop]directory-entry-stream" (func $drop_entries (param i32)))
  (import "wasi:filesystem/types@0.2.6" "filesystem-error-code" (func $filesystem_error_code (param i32 i32)))
  (import "wasi:io/streams@0.2.6" "[method]input-stream.blocking-read" (func $blocking_read (param i32 i64 i32)))
  (import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush" (func $blocking_write
    (param i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.6" "[resource-drop]input-stream" (func $drop_input (param i32)))
  (import "wasi:io/streams@0.2.6" "[resource-drop]output-stream" (func $drop_output (param i32)))
  (import "glovebox:plugin/files@0.1.0" "read" (func $files_read (param i32 i32 i64 i32 i32)))
  (import "glovebox:plugin/files@0.1.0" "write" (func $files_write (param i32 i32 i32 i32 i32)))
  (import "glovebox:plugin/files@0.1.0" "list" (func $files_list (param i32 i32 i32)))
  (import "glovebox:plugin/files@0.1.0" "stat" (func $files_stat (param i32 i32 i32)))
  (import "glovebox:plugin/files@0.1.0" "remove" (func $files_remove (param i32 i32 i32)))

  ;; The preopened directory, the one paths are resolved against, the open descriptor (-1: none), the first of two texts.
  (global $root (mut i32) (i32.const -1))
  (global $base (mut i32) (i32.const -1))
  (global $fd (mut i32) (i32.const -1))
  (global $a (mut i32) (i32.const 0))
  (global $a_length (mut i32) (i32.const 0))
  ;; Where the notes end; they begin at 4096.
  (global $end (mut i32) (i32.const 4096))

  (func $byte (param $byte i32)
    (i32.store8 (global.get $end) (local.get $byte))
    (global.set $end (i32.add (global.get $end) (i32.const 1))))

  (func $text (param $at i32) (param $length i32)
    (memory.copy (global.get $end) (local.get $at) (local.get $length))
    (global.set $end (i32.add (global.get $end) (local.get $length))))

  ;; Notes how a call went: its result begins at 128, the error code lies `$offset` bytes further. True when it went well.
  (func $went (param $offset i32) (result i32)
    (if (i32.load8_u (i32.const 128))
      (then
        (call $byte (i32.add (i32.const 65) (i32.load8_u (i32.add (i32.const 128) (local.get $offset)))))
        (return (i32.const 0))))
    (call $byte (i32.const 46))
    (i32.const 1))

  ;; As `$went`, for a stream: an error is asked for its code and noted after `#`, the end of the stream is `~`.
  (func $streamed (result i32)
    (if (i32.load8_u (i32.const 128))
      (then
        (if (i32.load8_u (i32.const 132))
          (then (call $byte (i32.const 126)))
          (else
            (call $byte (i32.const 35))
            (call $filesystem_error_code (i32.load (i32.const 136)) (i32.const 160))
            (call $byte (i32.add (i32.const 65) (i32.load8_u (i32.const 161))))))
        (return (i32.const 0))))
    (call $byte (i32.const 46))
    (i32.const 1))

  ;; As `$went`, for the interface `files`.
  (func $answered (param $offset i32) (result i32)
    (local $code i32)
    (if (i32.load8_u (i32.const 128))
      (then
        (local.set $code (i32.add (i32.const 128) (local.get $offset)))
        (call $byte (i32.const 33))
        (call $text (i32.load (local.get $code)) (i32.load offset=4 (local.get $code)))
        (return (i32.const 0))))
    (call $byte (i32.const 46))
    (i32.const 1))

  (func $open (param $flags i32) (param $mode i32) (param $at i32) (param $length i32)
    (call $open_at (global.get $base) (i32.const 1) (local.get $at) (local.get $length)
      (local.get $flags) (local.get $mode) (i32.const 128))
    (if (call $went (i32.const 4))
      (then
        (if (i32.ne (global.get $fd) (i32.const -1)) (then (call $drop_descriptor (global.get $fd))))
        (global.set $fd (i32.load (i32.const 132))))))

  (func $names
    (local $entries i32)
    (call $read_directory (global.get $fd) (i32.const 128))
    (if (i32.eqz (call $went (i32.const 4))) (then (return)))
    (local.set $entries (i32.load (i32.const 132)))
    (block $done
      (loop $next
        (call $read_directory_entry (local.get $entries) (i32.const 128))
        (br_if $done (i32.or (i32.load8_u (i32.const 128)) (i32.eqz (i32.load8_u (i32.const 132)))))
        (call $text (i32.load (i32.const 140)) (i32.load (i32.const 144)))
        (call $byte (i32.const 44))
        (br $next)))
    (call $drop_entries (local.get $entries)))

  (func $read_stream
    (local $stream i32)
    (call $read_via_stream (global.get $fd) (i64.const 0) (i32.const 128))
    (if (i32.eqz (call $went (i32.const 4))) (then (return)))
    (local.set $stream (i32.load (i32.const 132)))
    (call $blocking_read (local.get $stream) (i64.const 1000) (i32.const 128))
    (if (call $streamed) (then (call $text (i32.load (i32.const 132)) (i32.load (i32.const 136)))))
    (call $drop_input (local.get $stream)))

  ;; Writes to the stream whose handle is at 132.
  (func $write_stream (param $at i32) (param $length i32)
    (local $stream i32)
    (if (i32.eqz (call $went (i32.const 4))) (then (return)))
    (local.set $stream (i32.load (i32.const 132)))
    (call $blocking_write (local.get $stream) (local.get $at) (local.get $length) (i32.const 128))
    (drop (call $streamed))
    (call $drop_output (local.get $stream)))

  ;; Steps on a path.
  (func $path_step (param $op i32) (param $flag i32) (param $at i32) (param $length i32)
    (local $base i32)
    (local.set $base (global.get $base))
    (if (i32.eq (local.get $op) (i32.const 109)) ;; m
      (then (call $create_directory_at (local.get $base) (local.get $at) (local.get $length) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 115)) ;; s
      (then (call $stat_at (local.get $base) (local.get $flag) (local.get $at) (local.get $length) (i32.const 128))
        (drop (call $went (i32.const 8)))))
    (if (i32.eq (local.get $op) (i32.const 84)) ;; T
      (then
        (call $set_times_at (local.get $base) (i32.const 1) (local.get $at) (local.get $length)
          (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 104)) ;; h
      (then
        (call $link_at (local.get $base) (i32.const 0) (global.get $a) (global.get $a_length)
          (local.get $base) (local.get $at) (local.get $length) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 107)) ;; k
      (then (call $readlink_at (local.get $base) (local.get $at) (local.get $length) (i32.const 128))
        (if (call $went (i32.const 4)) (then (call $text (i32.load (i32.const 132)) (i32.load (i32.const 136)))))))
    (if (i32.eq (local.get $op) (i32.const 100)) ;; d
      (then (call $remove_directory_at (local.get $base) (local.get $at) (local.get $length) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 110)) ;; n
      (then
        (call $rename_at (local.get $base) (global.get $a) (global.get $a_length)
          (local.get $base) (local.get $at) (local.get $length) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 121)) ;; y
      (then
        (call $symlink_at (local.get $base) (global.get $a) (global.get $a_length)
          (local.get $at) (local.get $length) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 117)) ;; u
      (then (call $unlink_file_at (local.get $base) (local.get $at) (local.get $length) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 72)) ;; H
      (then (call $metadata_hash_at (local.get $base) (i32.const 1) (local.get $at) (local.get $length) (i32.const 128))
        (drop (call $went (i32.const 8))))))

  ;; Steps on the open descriptor.
  (func $open_step (param $op i32) (param $flag i32) (param $at i32) (param $length i32)
    (local $fd i32)
    (local.set $fd (global.get $fd))
    (if (i32.eq (local.get $fd) (i32.const -1)) (then (call $byte (i32.const 63)) (return)))
    (if (i32.eq (local.get $op) (i32.const 98)) ;; b
      (then (global.set $base (local.get $fd)) (global.set $fd (i32.const -1)) (call $byte (i32.const 46))))
    (if (i32.eq (local.get $op) (i32.const 114)) ;; r
      (then (call $read (local.get $fd) (i64.const 1000) (i64.const 0) (i32.const 128))
        (if (call $went (i32.const 4)) (then (call $text (i32.load (i32.const 132)) (i32.load (i32.const 136)))))))
    (if (i32.eq (local.get $op) (i32.const 119)) ;; w
      (then (call $write (local.get $fd) (local.get $at) (local.get $length) (i64.const 0) (i32.const 128))
        (drop (call $went (i32.const 8)))))
    (if (i32.eq (local.get $op) (i32.const 82)) (then (call $read_stream))) ;; R
    (if (i32.eq (local.get $op) (i32.const 87)) ;; W
      (then (call $write_via_stream (local.get $fd) (i64.const 0) (i32.const 128))
        (call $write_stream (local.get $at) (local.get $length))))
    (if (i32.eq (local.get $op) (i32.const 97)) ;; a
      (then (call $append_via_stream (local.get $fd) (i32.const 128))
        (call $write_stream (local.get $at) (local.get $length))))
    (if (i32.eq (local.get $op) (i32.const 122)) ;; z
      (then
        (call $set_size (local.get $fd) (i64.shl (i64.const 1) (i64.extend_i32_u (local.get $flag))) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 116)) ;; t
      (then
        (call $set_times (local.get $fd) (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 1) (i64.const 0)
          (i32.const 0) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 108)) (then (call $names))) ;; l
    (if (i32.eq (local.get $op) (i32.const 83)) ;; S
      (then (call $stat (local.get $fd) (i32.const 128)) (drop (call $went (i32.const 8)))))
    (if (i32.eq (local.get $op) (i32.const 77)) ;; M
      (then (call $metadata_hash (local.get $fd) (i32.const 128)) (drop (call $went (i32.const 8)))))
    (if (i32.eq (local.get $op) (i32.const 103)) ;; g
      (then (call $get_flags (local.get $fd) (i32.const 128))
        (if (call $went (i32.const 1)) (then (call $byte (i32.add (i32.const 48) (i32.load8_u (i32.const 129))))))))
    (if (i32.eq (local.get $op) (i32.const 112)) ;; p
      (then (call $get_type (local.get $fd) (i32.const 128))
        (if (call $went (i32.const 1)) (then (call $byte (i32.add (i32.const 48) (i32.load8_u (i32.const 129))))))))
    (if (i32.eq (local.get $op) (i32.const 99)) ;; c
      (then (call $sync (local.get $fd) (i32.const 128)) (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 67)) ;; C
      (then (call $sync_data (local.get $fd) (i32.const 128)) (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 118)) ;; v
      (then (call $advise (local.get $fd) (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 128))
        (drop (call $went (i32.const 1)))))
    (if (i32.eq (local.get $op) (i32.const 101)) ;; e
      (then (call $byte (i32.add (i32.const 48) (call $is_same_object (local.get $fd) (global.get $base)))))))

  ;; Steps of the interface `files`, by the second letter.
  (func $files_step (param $op i32) (param $at i32) (param $length i32)
    (local $node i32)
    (local $last i32)
    (if (i32.eq (local.get $op) (i32.const 114)) ;; r
      (then (call $files_read (local.get $at) (local.get $length) (i64.const 0) (i32.const 1000) (i32.const 128))
        (if (call $answered (i32.const 4)) (then (call $text (i32.load (i32.const 132)) (i32.load (i32.const 136)))))))
    (if (i32.eq (local.get $op) (i32.const 82)) ;; R: all there is
      (then (call $files_read (local.get $at) (local.get $length) (i64.const 0) (i32.const -1) (i32.const 128))
        (drop (call $answered (i32.const 4)))))
    (if (i32.eq (local.get $op) (i32.const 119)) ;; w
      (then
        (call $files_write (local.get $at) (local.get $length) (global.get $a) (global.get $a_length) (i32.const 128))
        (drop (call $answered (i32.const 4)))))
    (if (i32.eq (local.get $op) (i32.const 115)) ;; s
      (then (call $files_stat (local.get $at) (local.get $length) (i32.const 128))
        (if (call $answered (i32.const 8)) (then (call $text (i32.load (i32.const 144)) (i32.load (i32.const 148)))))))
    (if (i32.eq (local.get $op) (i32.const 100)) ;; d
      (then (call $files_remove (local.get $at) (local.get $length) (i32.const 128))
        (drop (call $answered (i32.const 4)))))
    (if (i32.eq (local.get $op) (i32.const 108)) ;; l
      (then
        (call $files_list (local.get $at) (local.get $length) (i32.const 128))
        (if (i32.eqz (call $answered (i32.const 4))) (then (return)))
        (local.set $node (i32.load (i32.const 132)))
        ;; A node is 24 bytes: name, kind, size.
        (local.set $last (i32.add (local.get $node) (i32.mul (i32.load (i32.const 136)) (i32.const 24))))
        (block $done
          (loop $next
            (br_if $done (i32.eq (local.get $node) (local.get $last)))
            (call $text (i32.load (local.get $node)) (i32.load offset=4 (local.get $node)))
            (call $byte (i32.const 44))
            (local.set $node (i32.add (local.get $node) (i32.const 24)))
            (br $next))))))

  ;; Does one step: `$step` is a pair of texts, 16 bytes.
  (func $step (param $step i32)
    (local $name i32)
    (local $op i32)
    (local $flag i32)
    (local $at i32)
    (local $length i32)
    (local.set $name (i32.load (local.get $step)))
    (local.set $op (i32.load8_u (local.get $name)))
    (local.set $flag (i32.sub (i32.load8_u offset=1 (local.get $name)) (i32.const 48)))
    (local.set $at (i32.load offset=8 (local.get $step)))
    (local.set $length (i32.load offset=12 (local.get $step)))
    (if (i32.eq (local.get $op) (i32.const 65)) ;; A
      (then (global.set $a (local.get $at)) (global.set $a_length (local.get $length)) (return)))
    (if (i32.eq (local.get $op) (i32.const 80)) ;; P
      (then (call $byte (i32.add (i32.const 48) (i32.ne (global.get $root) (i32.const -1))))))
    (if (i32.eq (local.get $op) (i32.const 70)) ;; F
      (then (call $files_step (i32.load8_u offset=1 (local.get $name)) (local.get $at) (local.get $length))))
    (if (i32.eq (local.get $op) (i32.const 111)) ;; o
      (then
        (call $open (local.get $flag) (i32.sub (i32.load8_u offset=2 (local.get $name)) (i32.const 48))
          (local.get $at) (local.get $length))))
    (if (call $is_path_step (local.get $op))
      (then (call $path_step (local.get $op) (local.get $flag) (local.get $at) (local.get $length))))
    (if (call $is_open_step (local.get $op))
      (then (call $open_step (local.get $op) (local.get $flag) (local.get $at) (local.get $length))))
    (call $byte (i32.const 10)))

  (data (i32.const 1024) "msThkdnyuH")
  (data (i32.const 1040) "brwRWaztlSMgpcCve")

  (func $is_path_step (param $op i32) (result i32)
    (call $among (local.get $op) (i32.const 1024) (i32.const 1034)))
  (func $is_open_step (param $op i32) (result i32)
    (call $among (local.get $op) (i32.const 1040) (i32.const 1057)))
  (func $among (param $op i32) (param $at i32) (param $last i32) (result i32)
    (loop $next
      (if (i32.eq (local.get $op) (i32.load8_u (local.get $at))) (then (return (i32.const 1))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $last))))
    (i32.const 0))

  (func $execute
    (local $step i32)
    (local $last i32)
    (call $preopens (i32.const 128))
    (if (i32.load (i32.const 132))
      (then (global.set $root (i32.load (i32.load (i32.const 128)))) (global.set $base (global.get $root))))
    ;; The attributes are the field at byte 80 of the input.
    (local.set $step (i32.load offset=80 (global.get $input)))
    (local.set $last (i32.add (local.get $step) (i32.mul (i32.load offset=84 (global.get $input)) (i32.const 16))))
    (block $done
      (loop $next
        (br_if $done (i32.eq (local.get $step) (local.get $last)))
        (call $step (local.get $step))
        (local.set $step (i32.add (local.get $step) (i32.const 16)))
        (br $next)))
    (call $notes (i32.const 4096) (i32.sub (global.get $end) (i32.const 4096))))
