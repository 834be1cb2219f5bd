// Giving memory back.
#pragma once

namespace trainyard {

// Returns to the system what is free, and what only the start of the process needed: pages of the program and
// its libraries that were read for relocating and initialising. Whatever is needed again comes back from the
// page cache by itself. For a process that has started and is going to wait.
void ReturnMemory();

}  // namespace trainyard
