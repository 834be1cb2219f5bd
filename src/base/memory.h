// Giving memory back.
#pragma once

namespace trainyard {

// Returns to the system what is free, and what only the start of the process needed: pages of the program and
// its libraries that were read for relocating and initialising. Whatever is needed again comes back from the
// page cache by itself. For a process that has started and is going to wait.
void ReturnMemory();

// Gives back what is free of the heap, as after a peak. Takes milliseconds.
void TrimHeap();

// Keeps the heap in one piece, so that what one thread frees another can use. Before the first thread starts,
// in a process that is to be small rather than to allocate in many threads at once.
void ShareHeap();

}  // namespace trainyard
