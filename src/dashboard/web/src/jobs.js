// All jobs, the newest first.
import { age, jobHref, now, stateMark, stateOfJob, tick, toneOfJob } from './format.js';
import { html, makeList, put } from './html.js';

const FILTERS = {
  all: () => true,
  running: (job) => toneOfJob(job) === 'running',
  waiting: (job) => toneOfJob(job) === 'waiting',
  ended: (job) => job.over,
  failed: (job) => toneOfJob(job) === 'failed',
};

/** More than any screen has. The very first time these are drawn alone, and the others after they are seen. */
const FIRST_ROWS = 50;
let seenBefore = false;

const WIDTH = 72;
const HEIGHT = 16;

/** Members that were ready, over time up to now or to the job's end, as a line of steps. */
export function sparkline(job) {
  const points = job.size ?? [];
  if (!points.length) return '';
  const t0 = points[0][0];
  const end = (job.over ? Date.parse(job.ended) : now()) / 1000 || 0;
  const length = Math.max(points.at(-1)[0] - t0, end - t0, 1);
  const top = Math.max(job.wanted, ...points.map((p) => p[1]), 1);
  const x = (t) => Math.round(((t - t0) / length) * WIDTH); // in whole steps: a row is drawn anew only when one is made
  const y = (n) => +(HEIGHT - 1 - (n / top) * (HEIGHT - 2)).toFixed(1);
  let line = `M0 ${y(points[0][1])}`;
  for (const [t, n] of points.slice(1)) line += `H${x(t)}V${y(n)}`;
  line += `H${WIDTH}`;
  return html`<svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img"
    aria-label="ready over time: at most ${Math.max(...points.map((p) => p[1]))}, last ${points.at(-1)[1]}">
    <path class="area" d="${line}V${HEIGHT}H0Z"/><path class="line" d="${line}"/></svg>`;
}

function row(job) {
  const tone = toneOfJob(job);
  return html`<tr class="${tone}">
    <td class="name"><a href="${jobHref(job.namespace, job.kind, job.name)}" title="${job.kind}/${job.name}">
      <span class="kind">${job.kind}/</span>${job.name}</a></td>
    <td class="namespace" title="${job.namespace}">${job.namespace}</td>
    <td class="st">${stateMark(tone, stateOfJob(job))}</td>
    <td class="num ready" data-label="ready">${job.ready}/${job.wanted}</td>
    <td class="num restarts${job.restarts ? '' : ' none'}" data-label="restarts">${job.restarts}</td>
    <td class="num age" data-label="age">${age(job.created)}</td>
    <td class="size">${sparkline(job)}</td>
    <td class="message" title="${job.message}">${job.message}</td></tr>`;
}

const keyOf = (job) => `${job.namespace}/${job.kind}/${job.name}`;

/** @returns {import('./main.js').Page} */
export function jobsPage(root, params) {
  /** @type {any[] | undefined} */
  let jobs;
  let words = '';
  let state = 'all';
  let list;
  const at = (selector) => root.querySelector(selector);

  function build() {
    root.innerHTML = `<div class="bar"><h1>Jobs</h1>
      <input type="search" aria-label="Filter jobs by text" placeholder="Filter by name, state, message" autocomplete="off" spellcheck="false">
      <nav class="chips" aria-label="Filter jobs by state"></nav></div>
      <table class="jobs cards"><thead><tr><th class="name">Job</th><th class="namespace">Namespace</th><th class="st">State</th>
      <th class="num ready">Ready</th><th class="num restarts">Restarts</th><th class="num age">Age</th><th class="size">Size</th><th class="message">Message</th></tr></thead>
      <tbody></tbody></table><div class="nothing"></div>`;
    list = makeList(at('tbody'));
    at('input').value = words;
    at('input').addEventListener('input', (event) => {
      words = event.target.value;
      history.replaceState(null, '', address(state)); // so that a reload or a copied address shows the same
      show();
    });
  }

  function address(ofState) {
    const query = new URLSearchParams();
    if (words) query.set('q', words);
    if (ofState !== 'all') query.set('state', ofState);
    return query.size ? `#/?${query}` : '#/';
  }

  function show(most = Infinity) {
    if (!jobs) return;
    if (!list) build();
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = jobs.filter((job) => {
      const text = `${job.kind}/${job.name} ${job.namespace} ${stateOfJob(job)} ${job.message}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
    const shown = matching.filter(FILTERS[state]);
    put(at('.chips'), Object.keys(FILTERS).map((name) => html`<a href="${address(name)}" data-key="${name}" class="${name}"
      ${name === state && html` aria-current="true"`}>${name} <b>${matching.filter(FILTERS[name]).length}</b></a>`));
    list(shown.slice(0, most), keyOf, row);
    at('table').hidden = !shown.length;
    put(at('.nothing'), !shown.length && (jobs.length
      ? html`<p class="empty">No job is like that. <a href="#/">Show all ${jobs.length}</a></p>`
      : html`<p class="empty">There are no jobs yet. Submit one: <code>trainyard apply -f FILE</code></p>`));
  }

  function onParams(next) {
    words = next.get('q') ?? '';
    state = Object.hasOwn(FILTERS, next.get('state')) ? next.get('state') : 'all';
    if (list) at('input').value = words;
    show();
  }
  onParams(params);

  return {
    name: 'jobs',
    title: 'Jobs',
    url: 'api/jobs',
    concerns: (change) => change.what !== 'nodes',
    onParams,
    draw(data) {
      jobs = data.jobs.map((job) => [Date.parse(job.created), job]).sort((a, b) => b[0] - a[0]).map(([, job]) => job);
      show(seenBefore ? undefined : FIRST_ROWS);
      if (!seenBefore && jobs.length > FIRST_ROWS) requestAnimationFrame(() => setTimeout(() => { show(); tick(root); }));
      seenBefore = true;
    },
  };
}
