// Times, amounts and states as people read them.
import { html } from './html.js';

/** The server's clock minus ours: ages are the server's, whatever this machine's clock says. */
let skew = 0;
/** @param {string} serverNow */
export function setClock(serverNow) {
  const t = Date.parse(serverNow);
  if (!Number.isNaN(t)) skew = t - Date.now();
}
export const now = () => Date.now() + skew;

/** @param {number} ms */
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10 && s % 60) return `${m}m ${s % 60}s`;
  if (m < 60) return `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 10 && m % 60) return `${h}h ${m % 60}m`;
  if (h < 48) return `${h}h`;
  return `${Math.floor(h / 24)}d`;
}

const two = (n) => String(n).padStart(2, '0');
const dayOf = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;

/** By hand, as Intl takes tens of microseconds each and there may be thousands. */
export function absolute(t) {
  const d = new Date(t);
  const zone = -d.getTimezoneOffset();
  const offset = `${zone < 0 ? '-' : '+'}${two(Math.floor(Math.abs(zone) / 60))}:${two(Math.abs(zone) % 60)}`;
  return `${dayOf(d)} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())} ${offset}`;
}

/** The label of a tick on an axis whose ticks are `step` seconds apart. */
export function clock(t, step = 1) {
  const d = new Date(t);
  if (step >= 86400) return dayOf(d).slice(5);
  const hm = `${two(d.getHours())}:${two(d.getMinutes())}`;
  return step < 60 ? `${hm}:${two(d.getSeconds())}` : hm;
}

function time(when, as) {
  const t = Date.parse(when ?? '');
  return Number.isNaN(t) ? html`<span class="none">–</span>`
    : html`<time data-own data-as="${as}" datetime="${when}" title="${absolute(t)}"></time>`;
}
/** "3m", and it grows by itself: see tick(). */
export const age = (when) => time(when, 'age');
/** "3m ago". */
export const ago = (when) => time(when, 'ago');

/** Writes the text of every age on the page. It is no part of the HTML, so that an age alone makes no row differ. */
export function tick(root = document) {
  for (const element of root.querySelectorAll('time[data-as]')) {
    const text = span(now() - Date.parse(element.dateTime)) + (element.dataset.as === 'ago' ? ' ago' : '');
    if (element.textContent !== text) element.textContent = text;
  }
}

/** @param {number | null | undefined} v */
export function number(v) {
  if (v === undefined || v === null) return '–';
  const size = Math.abs(v);
  return v !== 0 && (size >= 1e6 || size < 1e-3) ? v.toExponential(2) : String(+v.toPrecision(4));
}

export function bytes(v) {
  if (v === undefined || v === null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; v >= 1024 && i < units.length - 1; i++) v /= 1024;
  return `${v >= 100 || i === 0 ? Math.round(v) : +v.toFixed(1)} ${units[i]}`;
}

/** @param {string} resource a resource's name in Kubernetes */
export const amount = (resource, v) => (/memory|storage|hugepages/.test(resource) ? bytes(v) : number(v));

/** @typedef {'running' | 'waiting' | 'succeeded' | 'failed' | 'deleted'} Tone */

/** @returns {Tone} */
export function toneOfJob(job) {
  if (job.over) return job.succeeded ? 'succeeded' : 'failed';
  return /^(running|training|evaluating|predicting|ending)/i.test(job.state) ? 'running' : 'waiting';
}

/** Nobody has looked at a job that has no state. */
export const stateOfJob = (job) => job.state || 'New';

/** Of a pod or member. @returns {Tone} */
export function toneOf(state = '') {
  if (/succeed|complet/i.test(state)) return 'succeeded';
  if (/fail|error|crash|lost|unknown|kill|evict|oom/i.test(state)) return 'failed';
  if (/delet|gone|terminat/i.test(state)) return 'deleted';
  return /running|ready/i.test(state) ? 'running' : 'waiting';
}

export const stateMark = (tone, text) => html`<span class="state"><i class="dot ${tone}" aria-hidden="true"></i>${text}</span>`;

/** "worker-2" before "worker-10". */
export const byName = new Intl.Collator('en', { numeric: true }).compare;

/** @returns {string} */
export const jobHref = (namespace, kind, name) => `#/job/${[namespace, kind, name].map(encodeURIComponent).join('/')}`;
