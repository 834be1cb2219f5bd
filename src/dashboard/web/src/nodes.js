// Every node: what it has, what is used of it, and what runs there.
import { amount, byName, jobHref, stateMark, toneOf } from './format.js';
import { html, makeList, put } from './html.js';

function stateOf(node) {
  if (!node.ready) return stateMark('failed', node.cordoned ? 'not ready, cordoned' : 'not ready');
  return node.cordoned ? stateMark('waiting', 'ready, cordoned') : stateMark('succeeded', 'ready');
}

function resource({ name, used, of }) {
  const share = of > 0 ? Math.min(100, (used / of) * 100) : 0;
  const text = `${amount(name, used)} of ${amount(name, of)}`;
  return html`<div class="resource"><span class="label" title="${name}">${name}</span>
    <svg class="meter${share > 90 ? ' full' : ''}" width="100%" height="8" role="img" aria-label="${name}: ${text}">
    <rect class="track" width="100%" height="8" rx="2"/><rect class="used" width="${+share.toFixed(1)}%" height="8" rx="2"/></svg>
    <span class="value">${text}</span></div>`;
}

/** Pods of one job on one line. */
function jobsOn(node) {
  const groups = new Map();
  for (const pod of node.pods) {
    const key = pod.job ? `${pod.namespace}/${pod.job.kind}/${pod.job.name}` : '';
    if (!groups.has(key)) groups.set(key, { key, pod, members: [] });
    groups.get(key).members.push(pod);
  }
  const chip = (pod) => html`<span class="member" title="${pod.namespace}/${pod.pod}: ${pod.state}"><i class="dot ${toneOf(pod.state)}" aria-hidden="true"></i>
    ${pod.job ? pod.member ?? pod.pod : pod.pod}<span class="away"> ${pod.state}</span></span>`;
  return [...groups.values()].sort((a, b) => byName(a.key, b.key)).map(({ key, pod, members }) => html`<li data-key="${key}">
    ${pod.job ? html`<a href="${jobHref(pod.namespace, pod.job.kind, pod.job.name)}"><span class="kind">${pod.job.kind}/</span>${pod.job.name}</a>`
      : html`<span class="none">no job</span>`}
    <span class="who">${members.map(chip)}</span></li>`);
}

function card(node) {
  return html`<section class="panel node" aria-label="node ${node.name}"><h2>${node.name} ${stateOf(node)}</h2>
    ${node.resources.map(resource)}
    ${node.pods.length ? html`<ul class="on">${jobsOn(node)}</ul>` : html`<p class="none">Nothing runs here.</p>`}</section>`;
}

/** @returns {import('./main.js').Page} */
export function nodesPage(root) {
  let list;
  return {
    name: 'nodes',
    title: 'Nodes',
    url: 'api/nodes',
    draw(data) {
      if (!list) {
        root.innerHTML = '<div class="bar"><h1>Nodes</h1><span class="none about"></span></div><div class="nodes"></div>';
        list = makeList(root.querySelector('.nodes'));
      }
      const nodes = data.nodes.toSorted((a, b) => byName(a.name, b.name));
      const ready = nodes.filter((node) => node.ready).length;
      put(root.querySelector('.about'), nodes.length ? `${ready} of ${nodes.length} ready` : 'There are none.');
      list(nodes, (node) => node.name, card);
    },
  };
}
