// Package main has what Go's function tables describe: generic functions, methods, closures and
// inlined calls.
package main

import (
	"os"
	"sort"
	"strconv"
)

type number interface{ ~int | ~float64 }

func double[T number](value T) T { return value + value }

type stack[T any] struct{ items []T }

func (s *stack[T]) push(item T) { s.items = append(s.items, item) }

//go:noinline
func work(n int) string {
	var s stack[int]
	for i := 0; i < n; i++ {
		s.push(double(i))
	}
	sort.Slice(s.items, func(a, b int) bool { return s.items[a] > s.items[b] })
	return strconv.Itoa(s.items[0])
}

func main() {
	defer func() { _ = recover() }()
	os.Stdout.WriteString(work(len(os.Args)+2) + "\n")
}
