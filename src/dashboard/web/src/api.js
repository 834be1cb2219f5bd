// What is asked of the server, and how often.

const LEAST_GAP_MS = 250;
const RETRY_MS = 2000;

export class ApiError extends Error {
  /** @param {number} status 0: no answer came */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** What early.js has asked for; taken once. */
function takeEarly(url) {
  if (url !== 'api/jobs') return undefined;
  const early = globalThis.earlyJobs;
  globalThis.earlyJobs = undefined;
  return early;
}

/** @param {string} url relative, so that the page also works behind a proxy with a path of its own */
export async function get(url, signal) {
  let answer;
  try {
    answer = await (takeEarly(url) ?? fetch(url, { signal, headers: { accept: 'application/json' } }));
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'the server does not answer');
  }
  let body;
  try {
    body = await answer.json();
  } catch (error) {
    if (signal?.aborted) throw error;
  }
  if (!answer.ok) throw new ApiError(answer.status, body?.error ?? `the server answered ${answer.status}`);
  if (!body) throw new ApiError(0, 'the answer was cut off');
  return body;
}

const sleep = (ms) => ms > 0 && new Promise((wake) => { setTimeout(wake, Math.ceil(ms)); }); // browsers cut the fraction off

/** When each address was asked last: a page that is left and opened again keeps to the same pace. */
const asked = new Map();

/** Keeps one address's answer fresh: one request at a time, at most four a second, however often poke() is called. */
export class Fresh {
  #stop = new AbortController();
  #wanted = false;
  #busy = false;

  /**
   * @param {string} url
   * @param {(data: any) => void} onData
   * @param {(error: ApiError) => void} onError
   */
  constructor(url, onData, onError) {
    this.url = url;
    this.onData = onData;
    this.onError = onError;
  }

  poke() {
    this.#wanted = true;
    if (!this.#busy) this.#run();
  }

  stop() { this.#stop.abort(); }

  get signal() { return this.#stop.signal; }

  async #run() {
    const { signal } = this.#stop;
    this.#busy = true;
    while (this.#wanted && !signal.aborted) {
      await sleep((asked.get(this.url) ?? -LEAST_GAP_MS) + LEAST_GAP_MS - performance.now());
      if (signal.aborted) return;
      this.#wanted = false;
      asked.set(this.url, performance.now());
      try {
        const data = await get(this.url, signal);
        if (!signal.aborted) this.onData(data);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        this.onError(error);
        // A busy or broken server is left alone for a while, then asked again. A 4xx is an answer.
        if (error.status === 0 || error.status >= 500) {
          await sleep(RETRY_MS);
          this.#wanted = true;
        }
      }
    }
    this.#busy = false;
  }
}

/**
 * The stream of what happens. A hidden page closes it: browsers give one server six connections, and each open stream
 * would take one of them for good.
 */
export class Stream {
  /** @type {EventSource | undefined} */
  #source;
  #timer = 0;
  #stopped = false;

  /** @param {{ onState(live: boolean): void, onChange(change: any): void, onEvent(event: any): void }} to */
  constructor(to) {
    this.to = to;
    document.addEventListener('visibilitychange', () => (document.hidden ? this.close() : this.open()));
  }

  get isOpen() { return this.#source?.readyState === EventSource.OPEN; }

  open() {
    if (this.#source || this.#stopped || document.hidden) return;
    clearTimeout(this.#timer);
    const source = (this.#source = new EventSource('api/stream'));
    source.onopen = () => this.to.onState(true);
    source.onerror = () => {
      this.to.onState(false);
      // After an answer that is no stream the browser does not try again by itself.
      if (source.readyState === EventSource.CLOSED && this.#source === source) {
        this.#source = undefined;
        this.#timer = setTimeout(() => this.open(), RETRY_MS);
      }
    };
    source.addEventListener('change', (m) => this.to.onChange(JSON.parse(m.data)));
    source.addEventListener('event', (m) => this.to.onEvent(JSON.parse(m.data)));
  }

  close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = undefined;
  }

  /** For good. */
  stop() {
    this.#stopped = true;
    this.close();
  }
}
