// Package main is a program of the runtime alone: a generic function, a method and inlined calls.
package main

type number interface{ ~int | ~float64 }

func double[T number](value T) T { return value + value }

type stack[T any] struct{ items []T }

func (s *stack[T]) push(item T) { s.items = append(s.items, item) }

func main() {
	var s stack[int]
	for i := range 10 {
		s.push(double(i))
	}
	println(s.items[9])
}
