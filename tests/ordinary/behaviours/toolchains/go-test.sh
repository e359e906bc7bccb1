# why: projects in Go build, vet and test
# source: https://pkg.go.dev/cmd/go
# needs: go
mkdir own
printf 'module own\ngo 1.20\n' > own/go.mod
printf 'package own\nimport "testing"\nfunc TestOne(t *testing.T) { t.TempDir() }\n' > own/own_test.go
cd own
go test ./...
