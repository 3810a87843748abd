# Joins the frames of each sample of `perf script`, outermost first, and counts them: a stand-in for stackcollapse-perf.pl.
/^[^ \t]/ || /^ +[^ \t].*:/ { comm = $1; stack = ""; next }
/^\t/ {
    name = $2
    if (name == "[unknown]") name = $NF
    stack = stack == "" ? name : name ";" stack
    next
}
/^$/ { if (stack != "") count[comm ";" stack]++; stack = "" }
END {
    if (stack != "") count[comm ";" stack]++
    for (stack in count) print stack, count[stack]
}
