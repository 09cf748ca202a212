package asr

// A window is a part of a clip.
type window struct {
	clip     int
	from, to int // samples
	tokens   []Token
}

// split cuts a clip of n samples into windows of at most length samples, each of which
// begins length − overlap after the one before.
func split(clip, n, length, overlap int) []window {
	var all []window
	for from := 0; n > 0; from += length - overlap {
		to := min(from+length, n)
		all = append(all, window{clip: clip, from: from, to: to})
		if to == n {
			break
		}
	}
	return all
}

// join returns the tokens of a clip from those of its windows, whose frames count from
// the beginning of each.
func join(all []window, frameSamples int) []Token {
	var tokens []Token
	for i, w := range all {
		first := w.from / frameSamples
		for j := range w.tokens {
			w.tokens[j].Frame += first
		}
		if i == 0 {
			tokens = append(tokens, w.tokens...)
			continue
		}
		cut := cut(tokens, w.tokens, first, all[i-1].to/frameSamples)
		for len(tokens) > 0 && tokens[len(tokens)-1].Frame >= cut {
			tokens = tokens[:len(tokens)-1]
		}
		for _, t := range w.tokens {
			if t.Frame >= cut {
				tokens = append(tokens, t)
			}
		}
	}
	return tokens
}

// cut returns the frame in the middle half of the overlap [from, to) that is farthest from
// every token of a and b, the one nearest to the middle of equals.
func cut(a, b []Token, from, to int) int {
	middle := (from + to) / 2
	best, room := middle, -1
	for step := range (to-from)/4 + 1 {
		for _, at := range [2]int{middle - step, middle + step} {
			if r := min(distance(a, at), distance(b, at)); r > room {
				best, room = at, r
			}
		}
	}
	return best
}

// distance returns how many frames the nearest token begins before or after a frame. A
// cut is in front of its frame, so that a token that begins there lies half a frame off:
// all is counted twice.
func distance(tokens []Token, at int) int {
	nearest := 1 << 30
	for i := len(tokens) - 1; i >= 0; i-- {
		d := 2*(tokens[i].Frame-at) + 1
		nearest = min(nearest, max(d, -d))
		if d < 0 { // those before are farther
			break
		}
	}
	return nearest
}

// shares are the lengths that windows are filled up to, as shares of the window: x/y.
var shares = [...][2]int{{1, 32}, {1, 16}, {1, 8}, {3, 16}, {1, 4}, {3, 8}, {1, 2}, {3, 4}, {1, 1}}

// bucket returns the index of the shortest share of window that n samples fit.
func bucket(n, window int) int {
	for i := range shares {
		if n <= filled(i, window) {
			return i
		}
	}
	return len(shares) - 1
}

// filled returns the samples of a share of a window.
func filled(i, window int) int { return window * shares[i][0] / shares[i][1] }
