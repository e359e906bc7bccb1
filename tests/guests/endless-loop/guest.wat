  ;; Never comes back and never calls the host.
  (func $execute (loop $again (br $again)))
