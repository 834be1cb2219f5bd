// Events: of a job, and of the whole cluster as they happen.
import { ago, jobHref, tick } from './format.js';
import { html, makeList, put } from './html.js';

const MOST = 500;
const JOB_KINDS = ['tfjob', 'pytorchjob', 'aitrainingjob', 'elastic', 'task'];

/** @param {{time: string, count: number, warning: boolean, object: string, reason: string, message: string, namespace?: string}} event */
export function eventRow(event) {
  const [kind, name] = String(event.object).split('/');
  const isJob = event.namespace && name && JOB_KINDS.includes(kind.toLowerCase());
  return html`<li class="${event.warning ? 'warning' : 'normal'}">
    <span class="when">${ago(event.time)}</span>
    <span class="reason"><i class="dot${event.warning && ' waiting'}" aria-hidden="true"></i><b>${event.reason}</b>
      ${event.warning && html`<span class="away"> (warning)</span>`}${event.count > 1 && html` <span class="none" title="so often">×${event.count}</span>`}</span>
    <span class="object">${isJob ? html`<a href="${jobHref(event.namespace, kind.toLowerCase(), name)}">${event.object}</a>` : event.object}
      ${event.namespace && html` <span class="none">in ${event.namespace}</span>`}</span>
    <span class="text">${event.message}</span></li>`;
}

const sameAs = (event) => `${event.namespace ?? ''} ${event.object} ${event.reason} ${event.message}`;

/** Keys that stay when others come: two events alike differ by time, and else by how many there were before. */
export function eventKeys(events) {
  const seen = new Map();
  return events.map((event) => {
    const key = `${sameAs(event)} ${event.count > 1 ? '' : event.time}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return `${key} ${seen.get(key)}`;
  });
}

export const newestFirst = (events) => [...events].sort((a, b) => Date.parse(b.time) - Date.parse(a.time));

/** @returns {import('./main.js').Page} */
export function eventsPage(root) {
  let events = [];
  let list;
  let frame = 0;

  function show() {
    frame = 0;
    if (!list) {
      root.innerHTML = '<div class="bar"><h1>Events</h1><span class="none about"></span></div><ol class="events panel" aria-label="Events, the newest first"></ol><div class="nothing"></div>';
      list = makeList(root.querySelector('ol'));
    }
    const keys = eventKeys(events);
    const keyed = new Map(events.map((event, i) => [event, keys[i]]));
    list(events, (event) => keyed.get(event), eventRow);
    put(root.querySelector('.about'), events.length >= MOST ? `the last ${MOST}` : `${events.length}`);
    root.querySelector('ol').hidden = !events.length;
    put(root.querySelector('.nothing'), !events.length && html`<p class="empty">Nothing has happened yet.</p>`);
    tick();
  }

  return {
    name: 'events',
    title: 'Events',
    url: 'api/events',
    concerns: () => false, // they come by themselves
    draw(data) {
      events = newestFirst(data.events).slice(0, MOST);
      show();
    },
    onEvent(event) {
      // One that happens again comes again with a higher count, in the place of the former.
      if (event.count > 1) events = events.filter((old) => sameAs(old) !== sameAs(event));
      events = [event, ...events].slice(0, MOST);
      frame ||= requestAnimationFrame(show); // thousands may come at once
    },
    leave() { cancelAnimationFrame(frame); },
  };
}
