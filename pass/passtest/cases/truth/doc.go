// Package truth computes what the ops of pass mean, in float64 and straight loops
// written down from their formulas. It shares no code with any backend: it is what
// backends are judged by, so it is slow and plain on purpose.
//
// Arguments are dense and row-major, in the shapes that the ops give them. Functions
// trust their arguments; a case is checked before it gets here.
package truth
