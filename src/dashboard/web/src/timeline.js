// One lane per member, one bar per pod, a numbered mark where one was restarted or failed, and what each mark means.
import { absolute, ago, byName, clock, span } from './format.js';
import { html } from './html.js';

export const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const WORDS = { running: 'running', completed: 'completed', failed: 'failed', deleted: 'deleted', waiting: 'waiting' };

const narrow = matchMedia('(max-width: 820px)');

/** Ticks at round times of the viewer's clock: as many as there is room for. */
function ticks(from, to) {
  const most = narrow.matches ? 3 : 8;
  const seconds = (to - from) / 1000;
  const step = STEPS.find((s) => seconds / s <= most) ?? Math.ceil(seconds / most / 86400) * 86400;
  const zone = new Date(from).getTimezoneOffset() * 60_000;
  const result = [];
  for (let t = Math.ceil((from - zone) / (step * 1000)) * step * 1000 + zone; t <= to; t += step * 1000) {
    result.push({ t, label: clock(t, step) });
  }
  return result;
}

/** How a pod ended, in short. */
function howEnded(pod) {
  if (pod.signal !== undefined) return `signal ${pod.signal}`;
  if (pod.exitCode !== undefined) return `exit code ${pod.exitCode}`;
  return WORDS[pod.state] ?? pod.state;
}

function lanesOf(data) {
  const lanes = new Map(data.members.map((member) => [member.name, []]));
  for (const pod of data.timeline) {
    if (!lanes.has(pod.member)) lanes.set(pod.member, []);
    lanes.get(pod.member).push(pod);
  }
  for (const pods of lanes.values()) pods.sort((a, b) => Date.parse(a.began) - Date.parse(b.began));
  return [...lanes].sort((a, b) => byName(a[0], b[0]));
}

/** Every end that was not a good one, and every pod that had a successor; numbered by time. */
function marksOf(lanes) {
  const marks = [];
  for (const [member, pods] of lanes) {
    pods.forEach((pod, i) => {
      const again = i + 1 < pods.length;
      if (pod.ended && (again || pod.state === 'failed')) marks.push({ member, pod, again, t: Date.parse(pod.ended) });
    });
  }
  marks.sort((a, b) => a.t - b.t).forEach((mark, i) => { mark.number = i + 1; });
  return marks;
}

const causeOf = ({ member, pod, again }) =>
  `${member} ${again ? 'was restarted' : 'failed'}: ${howEnded(pod)}${pod.node ? ` on ${pod.node}` : ''}${pod.cause ? `. ${pod.cause}` : ''}`;

function lane([member, pods], marks, percent, to, grid) {
  const bars = pods.map((pod) => {
    const end = pod.ended ? Date.parse(pod.ended) : to;
    const from = percent(Date.parse(pod.began));
    const text = `${pod.pod}${pod.node ? ` on ${pod.node}` : ''}: ${pod.ended ? howEnded(pod) : pod.state}, ${span(end - Date.parse(pod.began))}, from ${absolute(Date.parse(pod.began))}`;
    return html`<rect class="pod ${pod.state}" x="${from}%" y="4" width="${Math.max(0, +(percent(end) - from).toFixed(2))}%" height="14"><title>${text}</title></rect>`;
  });
  const own = marks.filter((mark) => mark.member === member);
  const about = `${member}: ${pods.length} ${pods.length === 1 ? 'pod' : 'pods'}${own.map((mark) => `; mark ${mark.number}: ${howEnded(mark.pod)}`).join('')}`;
  return html`<div class="lane" data-key="${member}"><span class="label" title="${member}">${member}</span>
    <svg width="100%" height="22" role="img" aria-label="${about}">${grid}${bars}
    ${own.map((mark) => html`<svg class="mark ${mark.pod.state}" x="${percent(mark.t)}%" y="11" overflow="visible" data-key="${mark.number}">
      <title>${causeOf(mark)}</title><circle r="7.5"/><text y="3.3" text-anchor="middle">${mark.number}</text></svg>`)}</svg></div>`;
}

/**
 * @param {any} data of /api/job
 * @param {number} now
 */
export function timeline(data, now) {
  const lanes = lanesOf(data);
  if (!lanes.length) return html`<p class="none">No pod was made yet.</p>`;
  const times = data.timeline.flatMap((pod) => [Date.parse(pod.began), pod.ended ? Date.parse(pod.ended) : now]);
  const from = Math.min(Date.parse(data.job.created), ...times);
  const to = Math.max(from + 1000, data.job.over ? Math.max(Date.parse(data.job.ended ?? data.job.created), ...times) : now);
  const percent = (t) => +Math.min(100, Math.max(0, ((t - from) / (to - from)) * 100)).toFixed(2);
  const axis = ticks(from, to);
  const edge = narrow.matches ? 12 : 4; // half a label, in percent
  const grid = axis.map(({ t }) => html`<line class="grid" x1="${percent(t)}%" x2="${percent(t)}%" y2="22"/>`);
  const marks = marksOf(lanes);
  const states = Object.keys(WORDS).filter((state) => data.timeline.some((pod) => pod.state === state));

  return html`<div class="timeline"><div class="lanes" tabindex="0" role="region" aria-label="Pods over time">
    <div class="lane axis" aria-hidden="true"><span class="label"></span><svg width="100%" height="16">
    ${axis.map(({ t, label }) => html`<text x="${percent(t)}%" y="11"
      text-anchor="${percent(t) < edge ? 'start' : percent(t) > 100 - edge ? 'end' : 'middle'}">${label}</text>`)}</svg></div>
    ${lanes.map((one) => lane(one, marks, percent, to, grid))}</div>
    <p class="legend">${states.map((state) => html`<span><i class="swatch ${state}" aria-hidden="true"></i>${state}</span>`)}
    ${marks.length > 0 && html`<span><i class="swatch round" aria-hidden="true">n</i>restarted or failed</span>`}</p></div>
    ${marks.length > 0 && html`<div class="causes"><h3>Restarts and failures</h3><ol tabindex="0" aria-label="Restarts and failures, the newest first">
    ${marks.toReversed().map((mark) => html`<li data-key="${mark.number}"><i class="number ${mark.pod.state}">${mark.number}</i>
      <div><b>${mark.member}</b> ${mark.again ? 'restarted' : 'failed'} <span class="none">${ago(mark.pod.ended)}</span>
      <div class="tags"><span>${howEnded(mark.pod)}</span>${mark.pod.node && html`<span>${mark.pod.node}</span>`}</div>
      <div class="cause">${mark.pod.cause}</div></div></li>`)}</ol></div>`}`;
}
