// One job: why it is as it is, its pods over time, its metrics, members, events, and the last words of pods that are gone.
import { eventKeys, eventRow, newestFirst } from './events.js';
import { age, ago, byName, bytes, now, span, stateMark, stateOfJob, tick, toneOf, toneOfJob } from './format.js';
import { html, makeList, prose, put } from './html.js';
import { sparkline } from './jobs.js';
import { makePlots } from './plots.js';
import { timeline } from './timeline.js';

function head({ job, sentence, waits, next }) {
  return html`<p class="crumbs"><a href="#/">Jobs</a> / ${job.namespace} / ${job.kind}</p>
    <h1><span class="kind">${job.kind}/</span>${job.name} ${stateMark(toneOfJob(job), stateOfJob(job))}</h1>
    <p class="sentence">${prose(sentence)}</p>
    ${waits?.length > 0 && html`<div class="waits"><h2>Waits for</h2><ul>${waits.map((one) => html`<li>${prose(one)}</li>`)}</ul></div>`}
    ${next && html`<p class="next"><b>Next</b> ${prose(next)}</p>`}`;
}

function facts({ job }) {
  const took = job.started && job.ended ? span(Date.parse(job.ended) - Date.parse(job.started)) : undefined;
  const pairs = [
    ['created', ago(job.created)],
    ['started', job.started && ago(job.started)],
    ['ended', job.ended && ago(job.ended)],
    ['ran', took],
    ['ready', html`${job.ready}/${job.wanted} ${sparkline(job)}`],
    ['restarts', String(job.restarts)],
    ...(job.progress ?? []),
  ].filter(([, value]) => value);
  return pairs.map(([name, value]) => html`<div data-key="${name}"><dt>${name}</dt><dd>${value}</dd></div>`);
}

const memberRow = (member) => html`<tr>
  <td class="name" title="${member.pod}">${member.name}</td>
  <td class="st">${stateMark(toneOf(member.state), member.state)}</td>
  <td data-label="node">${member.node || html`<span class="none">–</span>`}</td>
  <td class="num${member.restarts ? '' : ' none'}" data-label="restarts">${member.restarts}</td>
  <td class="num" data-label="cpu">${member.cpu?.toFixed(2) ?? '–'}</td>
  <td class="num" data-label="memory">${bytes(member.memory)}</td>
  <td class="num" data-label="since">${age(member.since ?? member.created)}</td>
  <td class="why">${member.why}</td></tr>`;

const logOf = (pod) => html`<details data-key="${pod.pod} ${pod.began}"><summary><b>${pod.member}</b> <span class="none">${ago(pod.ended)}</span>
  <span class="cause">${pod.cause || pod.state}</span></summary>
  <pre tabindex="0" aria-label="last lines of ${pod.pod}">${pod.log}</pre></details>`;

const SKELETON = `<div class="head"></div><dl class="facts panel"></dl>
  <section class="panel life"><h2>Pods over time</h2><div class="content"></div></section>
  <section class="metrics" aria-label="Metrics"></section>
  <section class="panel who"><h2>Members</h2><div class="scroll"><table class="members cards"><thead><tr><th>Member</th><th>State</th><th>Node</th>
  <th class="num">Restarts</th><th class="num">CPU</th><th class="num">Memory</th><th class="num">Since</th><th>Why</th></tr></thead><tbody></tbody></table></div></section>
  <section class="panel logs" hidden><h2>Last words of pods that are gone</h2><div class="content"></div></section>
  <section class="panel"><h2>Events</h2><ol class="events" tabindex="0" aria-label="Events of this job, the newest first"></ol><div class="nothing"></div></section>`;

/** @returns {import('./main.js').Page} */
export function jobPage(root, namespace, kind, name) {
  let parts;
  let data;

  function build() {
    root.innerHTML = SKELETON;
    const at = (selector) => root.querySelector(selector);
    parts = {
      head: at('.head'), facts: at('.facts'), life: at('.life .content'), logs: at('.logs'), who: at('section.who'), noEvents: at('.nothing'),
      plots: makePlots(at('.metrics')), members: makeList(at('.members tbody')), events: makeList(at('.events')),
    };
  }

  const drawTimeline = () => put(parts.life, timeline(data, now()));

  return {
    name: 'jobs',
    title: name,
    url: `api/job?${new URLSearchParams({ namespace, kind, name })}`,
    // A change that names no job may be the end of this one.
    concerns: (change) => change.what !== 'nodes' && (!change.name || (change.name === name && change.kind === kind && change.namespace === namespace)),
    draw(answer) {
      data = answer;
      if (!parts) build();
      put(parts.head, head(data));
      put(parts.facts, facts(data));
      drawTimeline();
      parts.plots.show(data.plots);
      parts.members(data.members.toSorted((a, b) => byName(a.name, b.name)), (member) => member.name, memberRow);
      parts.who.hidden = !data.members.length;
      const gone = data.timeline.filter((pod) => pod.ended && pod.log).sort((a, b) => Date.parse(b.ended) - Date.parse(a.ended));
      parts.logs.hidden = !gone.length;
      put(parts.logs.querySelector('.content'), gone.map(logOf));
      const events = newestFirst(data.events);
      const keys = eventKeys(events);
      parts.events([...events.keys()], (i) => keys[i], (i) => eventRow({ ...events[i], namespace: undefined }));
      put(parts.noEvents, !events.length && html`<p class="none">None are known.</p>`);
    },
    tick() {
      if (!parts || data.job.over) return;
      drawTimeline();
      tick(parts.life);
    },
    // Of what members write into their logs no change is told.
    every: () => (data?.job.over ? 10 : 2),
    leave() { parts?.plots.destroy(); },
  };
}
