package guard

import (
	"sync"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// A Library makes and frees the objects of a device. It is called under the device's
// lock, with what the books have passed. A call that fails leaves nothing behind.
type Library[B, P, G, Q any] interface {
	// Usable is nil while calls may go to the library.
	Usable(what string) error

	MakeBuffer(driver.BufferDesc) (B, error)
	FreeBuffer(B)
	MakePipeline(driver.PipelineDesc) (P, error)
	FreePipeline(P)
	MakeGroup(*Pipeline[P], []driver.Binding, []*Buffer[B]) (G, error)
	FreeGroup(G)
	MakeQueries(count uint32) (Q, error)
	FreeQueries(Q)
}

// Objects are those methods of driver.Device and driver.Timer that make and destroy
// objects: the books are asked first, then the library, and what is made is entered.
type Objects[B, P, G, Q any] struct {
	lock    *sync.Mutex
	book    *Book[B, P, G, Q]
	library Library[B, P, G, Q]
}

// NewObjects makes the methods of a device with this lock, these books and this library.
func NewObjects[B, P, G, Q any](lock *sync.Mutex, book *Book[B, P, G, Q], library Library[B, P, G, Q]) Objects[B, P, G, Q] {
	return Objects[B, P, G, Q]{lock, book, library}
}

// Limits implements driver.Device.
func (o *Objects[B, P, G, Q]) Limits() driver.Limits { return o.book.limits }

// Features implements driver.Device.
func (o *Objects[B, P, G, Q]) Features() driver.Feature { return o.book.features }

// CreateBuffer implements driver.Device.
func (o *Objects[B, P, G, Q]) CreateBuffer(desc driver.BufferDesc) (driver.BufferID, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.library.Usable("create buffer"); err != nil {
		return 0, err
	}
	if err := o.book.CheckBuffer(desc); err != nil {
		return 0, err
	}
	b, err := o.library.MakeBuffer(desc)
	if err != nil {
		return 0, err
	}
	id, err := o.book.AddBuffer(desc, b)
	if err != nil {
		o.library.FreeBuffer(b)
	}
	return id, err
}

// DestroyBuffer implements driver.Device.
func (o *Objects[B, P, G, Q]) DestroyBuffer(id driver.BufferID) error {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.library.Usable("destroy buffer"); err != nil {
		return err
	}
	b, err := o.book.RemoveBuffer(id)
	if err != nil {
		return err
	}
	o.library.FreeBuffer(b.Native)
	return nil
}

// CreatePipeline implements driver.Device.
func (o *Objects[B, P, G, Q]) CreatePipeline(desc driver.PipelineDesc) (driver.PipelineID, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.library.Usable("create pipeline"); err != nil {
		return 0, err
	}
	if err := o.book.CheckPipeline(desc); err != nil {
		return 0, err
	}
	p, err := o.library.MakePipeline(desc)
	if err != nil {
		return 0, err
	}
	id, err := o.book.AddPipeline(desc, p)
	if err != nil {
		o.library.FreePipeline(p)
	}
	return id, err
}

// DestroyPipeline implements driver.Device.
func (o *Objects[B, P, G, Q]) DestroyPipeline(id driver.PipelineID) error {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.library.Usable("destroy pipeline"); err != nil {
		return err
	}
	p, err := o.book.RemovePipeline(id)
	if err != nil {
		return err
	}
	o.library.FreePipeline(p.Native)
	return nil
}

// CreateBindGroup implements driver.Device.
func (o *Objects[B, P, G, Q]) CreateBindGroup(pipeline driver.PipelineID, bindings []driver.Binding) (driver.BindGroupID, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.library.Usable("create bind group"); err != nil {
		return 0, err
	}
	p, buffers, err := o.book.CheckGroup(pipeline, bindings)
	if err != nil {
		return 0, err
	}
	g, err := o.library.MakeGroup(p, bindings, buffers)
	if err != nil {
		return 0, err
	}
	id, err := o.book.AddGroup(p, bindings, buffers, g)
	if err != nil {
		o.library.FreeGroup(g)
	}
	return id, err
}

// DestroyBindGroup implements driver.Device.
func (o *Objects[B, P, G, Q]) DestroyBindGroup(id driver.BindGroupID) error {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.library.Usable("destroy bind group"); err != nil {
		return err
	}
	g, err := o.book.RemoveGroup(id)
	if err != nil {
		return err
	}
	o.library.FreeGroup(g.Native)
	return nil
}

// CreateQueries implements driver.Timer.
func (o *Objects[B, P, G, Q]) CreateQueries(count uint32) (driver.QueryID, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.library.Usable("create queries"); err != nil {
		return 0, err
	}
	if err := o.book.CheckQueries(count); err != nil {
		return 0, err
	}
	q, err := o.library.MakeQueries(count)
	if err != nil {
		return 0, err
	}
	id, err := o.book.AddQueries(count, q)
	if err != nil {
		o.library.FreeQueries(q)
	}
	return id, err
}

// DestroyQueries implements driver.Timer.
func (o *Objects[B, P, G, Q]) DestroyQueries(id driver.QueryID) error {
	o.lock.Lock()
	defer o.lock.Unlock()
	if err := o.library.Usable("destroy queries"); err != nil {
		return err
	}
	q, err := o.book.RemoveQueries(id)
	if err != nil {
		return err
	}
	o.library.FreeQueries(q.Native)
	return nil
}

// FreeAll frees every live object, bind groups first and buffers last, and empties the
// books. The device's lock is held.
func (o *Objects[B, P, G, Q]) FreeAll() {
	l := o.library
	o.book.drain(l.FreeGroup, l.FreePipeline, l.FreeQueries, l.FreeBuffer)
}

// Abandon empties the books and frees nothing, for work that may go on. The device's lock
// is held.
func (o *Objects[B, P, G, Q]) Abandon() {
	o.book.drain(func(G) {}, func(P) {}, func(Q) {}, func(B) {})
}
