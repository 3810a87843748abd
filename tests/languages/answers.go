// As answers.c.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"time"

	chronosym "github.com/chronosym/chronosym/crates/chronosym-c/go"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	timeline, err := chronosym.Open(os.Args[1:2], nil)
	check(err)
	resolver, err := chronosym.NewResolver(timeline, nil)
	check(err)
	bytes, err := os.ReadFile(os.Args[2])
	check(err)
	queries := make([]chronosym.Query, len(bytes)/24)
	for i := range queries {
		it := bytes[24*i:]
		queries[i] = chronosym.Query{
			Address: binary.LittleEndian.Uint64(it), TimeNS: binary.LittleEndian.Uint64(it[8:]),
			PID: binary.LittleEndian.Uint32(it[16:]), Return: binary.LittleEndian.Uint32(it[20:]),
		}
	}
	var rows chronosym.Rows
	check(resolver.Resolve(queries, &rows))
	out := bufio.NewWriter(os.Stdout)
	for query := range queries {
		for _, frame := range rows.FramesOf(query) {
			it := rows.Table[frame]
			inlined := 0
			if it.Inlined {
				inlined = 1
			}
			fmt.Fprintf(out, "%s!%s|%s|%s:%d:%d|%d|%s|%s|%s|%s|%s\t", it.Module, it.Method, it.Signature,
				it.File, it.Line, it.Column, inlined, it.Tier, it.Evidence, it.Certainty, it.NameReason, it.LineReason)
		}
		out.WriteByte('\n')
	}
	check(out.Flush())
	if len(os.Args) > 3 {
		rounds, _ := strconv.Atoi(os.Args[3])
		best := time.Duration(1 << 62)
		for ; rounds > 0; rounds-- {
			start := time.Now()
			check(resolver.Resolve(queries, &rows))
			if taken := time.Since(start); taken < best {
				best = taken
			}
		}
		fmt.Fprintf(os.Stderr, "%.2f\n", float64(best.Nanoseconds())/float64(len(queries)))
	}
	check(resolver.Close())
	check(timeline.Close())
}
