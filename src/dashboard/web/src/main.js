// Which page is on screen, what feeds it, and the header.
import { Fresh, Stream, get } from './api.js';
import { eventsPage } from './events.js';
import { setClock, tick } from './format.js';
import { html, put } from './html.js';
import { jobPage } from './job.js';
import { jobsPage } from './jobs.js';
import { nodesPage } from './nodes.js';

/**
 * @typedef {object} Page
 * @property {string} name which link of the header it is under
 * @property {string} title
 * @property {string} url what it shows, from the API
 * @property {(data: any) => void} draw
 * @property {(change: {what: string, namespace?: string, kind?: string, name?: string}) => boolean} [concerns] all do, if absent
 * @property {(event: any) => void} [onEvent]
 * @property {() => void} [tick] each second
 * @property {() => number} [every] after how many seconds it is asked for again, though no change was told; 10, if absent
 * @property {(params: URLSearchParams) => void} [onParams] the part of the address after "?" has changed
 * @property {() => void} [leave]
 */

/** What no change is told of, as what a pod uses, is asked for again after so many seconds. */
const REFRESH = 10;

const main = document.getElementById('main');
const note = document.getElementById('note');
const live = document.getElementById('live');

/** @type {Page | undefined} */
let page;
/** @type {Fresh | undefined} */
let fresh;
let path = '';
let cluster = '';
let lockedOut = false;
/** The last answers, so that a page that was left is there again at once, and where it was scrolled to. */
const answers = new Map();
const scrolled = new Map();

function readAddress() {
  const [where, query = ''] = location.hash.slice(1).split('?');
  let parts = [];
  try {
    parts = where.split('/').filter(Boolean).map(decodeURIComponent);
  } catch { /* not ours: the jobs are shown */ }
  return { where: parts.length ? where : '/', parts, params: new URLSearchParams(query) };
}

/** @returns {Page} */
function makePage(root, parts, params) {
  if (parts[0] === 'job' && parts.length === 4) return jobPage(root, parts[1], parts[2], parts[3]);
  if (parts[0] === 'nodes') return nodesPage(root);
  if (parts[0] === 'events') return eventsPage(root);
  return jobsPage(root, params);
}

function show(data) {
  setClock(data.now);
  if (data.cluster) showCluster(data.cluster);
  say('');
  page.draw(data);
  tick();
}

function navigate() {
  if (lockedOut) return;
  const { where, parts, params } = readAddress();
  if (page && where === path) return page.onParams?.(params);
  const first = !page;
  fresh?.stop();
  page?.leave?.();
  scrolled.set(path, scrollY);
  path = where;

  const root = document.createElement('div');
  root.innerHTML = '<p class="empty">Loading …</p>';
  main.replaceChildren(root);
  page = makePage(root, parts, params);
  document.title = `${page.title} · Trainyard`;
  for (const link of document.querySelectorAll('nav a[data-page]')) {
    if (link.dataset.page === page.name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (answers.has(page.url)) show(answers.get(page.url));
  if (!first) {
    scrollTo(0, answers.has(page.url) ? scrolled.get(path) ?? 0 : 0);
    main.focus({ preventScroll: true });
  }

  const { url } = page;
  fresh = new Fresh(url, (data) => {
    answers.delete(url);
    answers.set(url, data);
    if (answers.size > 8) answers.delete(answers.keys().next().value);
    show(data);
    stream.open(); // only now: without a token it would be one more refusal
    learnCluster();
  }, onError);
  fresh.poke();
}

function onError(error) {
  if (error.status === 401) return lockOut();
  if (error.status === 404) {
    answers.delete(page.url);
    page.leave?.();
    put(main, html`<p class="empty">${error.message}<br><a href="#/">All jobs</a></p>`);
    // It may be made again under its name: then all of it is new.
    const { name, title, url, concerns } = page;
    page = { name, title, url, concerns, draw: () => { path = ''; navigate(); } };
    return stream.open();
  }
  if (!stream.isOpen) setLive(false);
  say(`Not up to date: ${error.message}. It is asked again.`);
}

function lockOut() {
  lockedOut = true;
  fresh.stop();
  stream.stop();
  page.leave?.();
  say('');
  live.hidden = true;
  document.title = 'Trainyard';
  document.querySelector('nav').hidden = true;
  main.innerHTML = '<div class="locked"><h1>No entry without its token</h1><p>This page needs its token: open the address that '
    + '<code>trainyard up</code> or <code>trainyard status</code> printed.</p></div>';
}

/** Only the list of jobs tells the cluster's name; a page opened elsewhere asks for it once. Leaving it ends that. */
async function learnCluster() {
  if (cluster) return;
  cluster = '?';
  try {
    showCluster((await get('api/jobs', fresh.signal)).cluster);
  } catch {
    cluster = '';
  }
}

function showCluster(name) {
  cluster = name;
  document.getElementById('cluster').textContent = name;
}

function say(text) {
  note.hidden = !text;
  if (note.textContent !== text) note.textContent = text;
}

function setLive(isLive) {
  const state = isLive ? 'live' : 'reconnecting';
  if (live.dataset.state === state) return false;
  live.dataset.state = state;
  live.lastElementChild.textContent = state;
  return true;
}

const stream = new Stream({
  onState(isLive) {
    // Open: what was missed until then is not told again. Lost: the answer says whether we are still let in.
    if (setLive(isLive) || isLive) fresh.poke();
  },
  onChange(change) {
    if (page.concerns?.(change) ?? true) fresh.poke();
  },
  onEvent: (event) => page.onEvent?.(event),
});

addEventListener('hashchange', navigate);
history.scrollRestoration = 'manual';
let seconds = 0;
setInterval(() => {
  if (document.hidden) return;
  tick();
  page?.tick?.();
  seconds += 1;
  if (seconds % (page?.every?.() ?? REFRESH) === 0 && live.dataset.state === 'live') fresh.poke();
}, 1000);
navigate();
