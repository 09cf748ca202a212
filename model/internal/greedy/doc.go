// Package greedy decodes text on a device, token by token: the loop that the decoders of
// Whisper and Moonshine share.
//
// A [Loop] keeps, for each item of a batch, a row of ids and the position of the last
// one that is known. A step runs the network's layers on that id, takes the class of the
// largest logit, writes it as the next id, and moves on unless the item has ended, all on
// the device: a submission holds several steps, and the host only looks whether all items
// are done. Where the host must choose, for rules that no op has, [Loop.Step] takes ids
// and returns logits.
package greedy
