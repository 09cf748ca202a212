{{define "mel_frames"}}
// frames_of returns how many frames a clip of some samples has.
fn frames_of(length: u32) -> u32 {
	let padded = length + words.left + words.right;
	if (length == 0u || padded < words.frame) {
		return 0u;
	}
	return (padded - words.frame) / words.hop + 1u - words.drop;
}
{{end}}
