package cuda

import (
	"fmt"
	"sync"
	"time"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

// marks are the tickets of a stream, with the page-locked memory in which the numbers of
// finished runs arrive.
type marks struct {
	mu    sync.Mutex
	idle  []*ticket
	pages []uintptr
	asked time.Time // when the queue was last asked how it is
}

// markPage is how many bytes of marks are made at once.
const markPage = 4096

// take returns a ticket whose mark holds no number.
func (m *marks) take(d *device) (*ticket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.idle) == 0 {
		var page uintptr
		err := d.do(func() (err error) {
			page, err = d.drv.HostAlloc(markPage)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%d bytes of page-locked memory: %w", markPage, err)
		}
		m.pages = append(m.pages, page)
		const apart = 64 // a cache line each
		for at := page; at < page+markPage; at += apart {
			m.idle = append(m.idle, newTicket(at))
		}
	}
	t := m.idle[len(m.idle)-1]
	m.idle = m.idle[:len(m.idle)-1]
	clear(t.mark)
	m.asked = time.Now()
	return t, nil
}

// put takes a ticket back.
func (m *marks) put(t *ticket) {
	t.p, t.job, t.block, t.spans = nil, nil, nil, nil
	m.mu.Lock()
	m.idle = append(m.idle, t)
	m.mu.Unlock()
}

// lose drops a ticket whose mark may still be written to.
func (m *marks) lose(t *ticket) { t.p, t.job, t.block = nil, nil, nil }

// due reports, every few milliseconds, that it is time to ask how the queue is.
func (m *marks) due() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Sub(m.asked) < 5*time.Millisecond {
		return false
	}
	m.asked = now
	return true
}

// free gives the memory up. It runs on the thread of the context.
func (m *marks) free(drv driver.Driver) {
	for _, page := range m.pages {
		drv.HostFree(page)
	}
	m.pages, m.idle = nil, nil
}
