# why: `go build` stamps the commit into the program
# source: https://pkg.go.dev/cmd/go#hdr-Compile_packages_and_dependencies
# needs: go git
printf 'module own\ngo 1.20\n' > go.mod
printf 'package main\nfunc main() {}\n' > main.go
mkdir -p build
go build -buildvcs=true -o build/own .
go version -m build/own | grep -q vcs.revision
