module github.com/chronosym/chronosym/crates/chronosym-c/go

go 1.19
