// Asks for the jobs while the page's own script is still on its way: see get() in api.js. A script of its own, as the page
// may have none inside it.
if (/^#?\/?(\?|$)/.test(location.hash)) {
  globalThis.earlyJobs = fetch('api/jobs', { headers: { accept: 'application/json' } });
  globalThis.earlyJobs.catch(() => {}); // whoever takes it sees that it failed
}
