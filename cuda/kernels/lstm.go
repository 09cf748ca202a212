package kernels

import "fmt"

// An LSTM is steps of one layer of a [pass.LSTM]. What the inputs give to the gates is
// there already, with the bias. Steps count in time for the forward direction and against
// it for the other: step s is at Time − 1 − s there.
type LSTM struct {
	Gates   F32 // [Batch][Steps][Directions][i, f, g, o][Hidden]; those of both directions in the order of time
	Weights F32 // [Directions][Hidden][i, f, g, o][Depth], zeros from Hidden on
	// State between launches: h that is read and h that is written, of each item as many
	// vectors of Depth elements as Vectors says, and c, [Batch][Directions][Hidden].
	From, To, Cells F32
	// Of launches that make the gates' share of the input themselves: [Directions][i, f, g,
	// o][Hidden] rows of InputRow elements, zeros from Inputs on, and as many biases.
	InputWeights, Bias F32
	InputRow           int64
	X                  View // [Batch][Time][Inputs]
	Y                  View // [Batch][Time][Directions·Hidden]; zero beyond an item's length
	H0, C0, H, C       View // [States][Directions][Hidden], of this layer; nil: none
	Lengths            Items
	Rows               Items // of the state; P nil: item b has row b

	Batch, Time, Directions, Hidden uint32
	Depth                           uint32 // Hidden, rounded up to fours
	First, Steps                    uint32 // the first step and how many
	Offset, Count                   uint32 // the first step's number among those of Gates; steps that Gates holds
	Begin                           uint32 // 1: the state is H0 and C0, or zero, not From and Cells
	End                             uint32 // bits: where the state goes
	Vectors                         uint32 // from an item's first vector of From and To to the next's
	Inputs                          uint32
	_                               uint32
}

// Where an LSTM leaves its state.
const (
	LSTMEndCells   = 1 // C
	LSTMEndHidden  = 2 // H
	LSTMKeepCells  = 4 // Cells
	LSTMKeepHidden = 8 // To
)

// A StateCopy copies rows of a state: for each item its own.
type StateCopy struct {
	X, Y    View // [row of an item][Vectors][Hidden]; X nil: zeros
	Rows    Items
	Batch   uint32
	Vectors uint32
	Hidden  uint32
	XByItem uint32 // 1: X has a row for each item, in their order
}

// LSTMResident are the kernels that keep the recurrent weights on the chip, for up to so
// many hidden units and so many items of the batch in a block.
var LSTMResident = []struct{ Hidden, Items int }{{32, 1}, {32, 4}, {64, 1}, {64, 4}, {128, 1}, {128, 2}}

// LSTMClusters are the kernels that spread the recurrent weights over the blocks of a
// cluster, for up to so many hidden units and so many items of the batch.
var LSTMClusters = []struct{ Hidden, Blocks, Items, perThread, inputs int }{
	{128, 8, 1, 1, 16}, {128, 4, 1, 2, 16}, {128, 2, 1, 2, 16}, {256, 8, 1, 1, 32}, {256, 8, 4, 1, 32},
}

func lstmClusterEntries() []Entry {
	const ahead = 4 // steps whose gates are on their way
	var all []Entry
	for _, c := range LSTMClusters {
		threads := c.Hidden / c.Blocks / c.perThread * c.Hidden / c.inputs
		all = append(all, Entry{
			Name: fmt.Sprintf("lstm_cluster_%dx%dx%d", c.Hidden, c.Blocks, c.Items),
			Call: fmt.Sprintf("lstm::cluster<%d, %d, %d, %d, %d, %d>", c.Hidden, c.Blocks, c.perThread, c.inputs, c.Items, ahead),
			Args: LSTM{}, Threads: threads, Resident: 1, Cluster: c.Blocks, From: 90,
			Shared: 4*c.Items*(2*c.Hidden+ahead*threads) + 16,
		})
	}
	return all
}

// LSTMStepItems are how many items a block of the kernels for single steps takes.
var LSTMStepItems = []int{1, 2, 8}

// lstmHeld is how many weights of each gate a thread keeps in registers at most, in fours.
const lstmHeld = 52

func lstmEntries() []Entry {
	var all []Entry
	for _, r := range LSTMResident {
		threads := 2 * r.Hidden
		all = append(all, Entry{
			Name: fmt.Sprintf("lstm_resident_%dx%d", r.Hidden, r.Items), Call: fmt.Sprintf("lstm::resident<%d, %d, %d>", r.Hidden, r.Items, lstmHeld),
			Args: LSTM{}, Threads: threads, Resident: 1,
			Shared: 4 * (4*max(r.Hidden/2-lstmHeld, 0)*threads + 2*r.Items*r.Hidden),
		})
	}
	for _, n := range LSTMStepItems {
		resident := 4
		if n == 8 {
			resident = 2
		}
		for _, way := range [][2]string{{"step", "false"}, {"whole", "true"}} {
			all = append(all, Entry{
				Name: fmt.Sprintf("lstm_%s_%d", way[0], n), Call: fmt.Sprintf("lstm::step<%d, %s>", n, way[1]),
				Args: LSTM{}, Threads: 128, Resident: resident,
			})
		}
	}
	return append(all, Entry{Name: "lstm_state", Call: "lstm::copy_state", Args: StateCopy{}, Threads: 128})
}

var (
	lstm        = Family{Name: "lstm", Entries: lstmEntries()}
	lstmCluster = Family{Name: "lstm_sm90", Entries: lstmClusterEntries()}
)
